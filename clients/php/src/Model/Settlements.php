<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Settlements, the earliest first.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<Settlement> $aggregations
 * @property-read int|null $pages
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Settlements extends Answer
{
    protected const TYPES = ['aggregations' => Settlement::class, 'result' => Result::class];
}
