<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A stored means of payment. It has no paymentType.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string $paymentBrand
 * @property-read Card|null $card
 * @property-read mixed $bankAccount
 * @property-read mixed $virtualAccount
 * @property-read mixed $networkToken
 * @property-read mixed $accountUpdate
 * @property-read string|null $testMode
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Registration extends Answer
{
    protected const TYPES = ['card' => Card::class, 'result' => Result::class];
}
