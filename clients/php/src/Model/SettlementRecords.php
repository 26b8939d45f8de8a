<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A settlement with its records.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read Settlement|null $aggregation
 * @property-read list<mixed> $reconciliations
 * @property-read int|null $pages
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class SettlementRecords extends Answer
{
    protected const TYPES = ['aggregation' => Settlement::class, 'result' => Result::class];
}
