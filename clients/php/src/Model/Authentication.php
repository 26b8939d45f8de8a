<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * An authentication without a payment.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string $paymentType
 * @property-read string $paymentBrand
 * @property-read string $amount
 * @property-read string $currency
 * @property-read Card|null $card
 * @property-read mixed $threeDSecure
 * @property-read mixed $redirect
 * @property-read string|null $testMode
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Authentication extends Answer
{
    protected const TYPES = ['card' => Card::class, 'result' => Result::class];
}
