<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A payment link as it stands.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string $url
 * @property-read string $state
 * @property-read string|null $amount
 * @property-read string $currency
 * @property-read string $paymentType
 * @property-read string|null $merchantTransactionId
 * @property-read mixed $link
 * @property-read int $paidCount
 * @property-read string $paidAmount
 * @property-read string $createdAt
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class PaymentLink extends Answer
{
    protected const TYPES = ['result' => Result::class];
}
