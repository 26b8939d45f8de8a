<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Where a period's money is lost, by currency, the largest first.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<ApprovalWaterfall> $waterfalls
 * @property-read bool $complete
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class ApprovalWaterfalls extends Answer
{
    protected const TYPES = ['waterfalls' => ApprovalWaterfall::class, 'result' => Result::class];
}
