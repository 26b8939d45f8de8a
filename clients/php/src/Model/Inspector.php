<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * The built-in webhook inspector.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $mode
 * @property-read string $state
 * @property-read string $secret
 * @property-read int $newest
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Inspector extends Answer
{
    protected const TYPES = ['result' => Result::class];
}
