<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * One part of the payments.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $segment
 * @property-read int $attempts
 * @property-read int $approvedAttempts
 * @property-read RateInterval|null $attemptRate
 * @property-read int $purchases
 * @property-read int $approvedPurchases
 * @property-read RateInterval|null $purchaseRate
 * @property-read list<ApprovalRateAmounts> $amounts
 */
final class ApprovalRate extends Model
{
    protected const TYPES = ['attemptRate' => RateInterval::class, 'purchaseRate' => RateInterval::class, 'amounts' => ApprovalRateAmounts::class];
}
