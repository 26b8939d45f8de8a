<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A payment. Every accepted structure of the request comes back beside these fields, nested.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string|null $referencedId
 * @property-read string $paymentType
 * @property-read string $paymentBrand
 * @property-read string $amount
 * @property-read string $currency
 * @property-read string $descriptor
 * @property-read PaymentResultDetails|null $resultDetails
 * @property-read Card|null $card
 * @property-read string|null $brandResult
 * @property-read mixed $risk
 * @property-read mixed $customParameters
 * @property-read string|null $registrationId
 * @property-read mixed $registration
 * @property-read string|null $testMode
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Payment extends Answer
{
    protected const TYPES = ['resultDetails' => PaymentResultDetails::class, 'card' => Card::class, 'result' => Result::class];
}
