<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Payment links, the newest first.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<PaymentLinksPaymentLinks> $paymentLinks
 * @property-read int $pages
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class PaymentLinks extends Answer
{
    protected const TYPES = ['paymentLinks' => PaymentLinksPaymentLinks::class, 'result' => Result::class];
}
