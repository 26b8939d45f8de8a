<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * Purchases' money in one currency.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $currency
 * @property-read string $asked
 * @property-read string $approved
 */
final class ApprovalRateAmounts extends Model
{}
