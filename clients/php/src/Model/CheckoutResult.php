<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * The payment object (see Payment) or the registration, once there is one; the envelope alone until then.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string|null $id
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class CheckoutResult extends Answer
{
    protected const TYPES = ['result' => Result::class];
}
