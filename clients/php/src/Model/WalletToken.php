<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A token to try with.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $wallet
 * @property-read string $format
 * @property-read string $paymentToken
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class WalletToken extends Answer
{
    protected const TYPES = ['result' => Result::class];
}
