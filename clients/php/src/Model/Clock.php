<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * The merchant's clock.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $now
 * @property-read int $offsetSeconds
 * @property-read bool|null $complete
 * @property-read int|null $remainingSeconds
 * @property-read mixed $ran
 * @property-read list<string>|null $waiting
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Clock extends Answer
{
    protected const TYPES = ['result' => Result::class];
}
