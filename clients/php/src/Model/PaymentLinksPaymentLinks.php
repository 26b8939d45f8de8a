<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

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
 */
final class PaymentLinksPaymentLinks extends Model
{}
