<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Approval rates of a period.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $groupBy
 * @property-read list<ApprovalRate> $approvals
 * @property-read bool $complete
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class ApprovalRates extends Answer
{
    protected const TYPES = ['approvals' => ApprovalRate::class, 'result' => Result::class];
}
