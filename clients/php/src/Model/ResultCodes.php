<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Every result code of this gateway.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<ResultCodesResultCodes> $resultCodes
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class ResultCodes extends Answer
{
    protected const TYPES = ['resultCodes' => ResultCodesResultCodes::class, 'result' => Result::class];
}
