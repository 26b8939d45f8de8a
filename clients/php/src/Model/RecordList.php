<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Transactions.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<Listed> $records
 * @property-read int|null $pages
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class RecordList extends Answer
{
    protected const TYPES = ['records' => Listed::class, 'result' => Result::class];
}
