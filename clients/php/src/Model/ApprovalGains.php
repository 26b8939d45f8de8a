<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * What would bring most: of each currency what surely brings most first.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<ApprovalGain> $gains
 * @property-read bool $complete
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class ApprovalGains extends Answer
{
    protected const TYPES = ['gains' => ApprovalGain::class, 'result' => Result::class];
}
