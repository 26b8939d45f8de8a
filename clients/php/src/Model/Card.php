<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * What is known of the card. Number and CVV never come back.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string|null $bin
 * @property-read string|null $last4Digits
 * @property-read string|null $holder
 * @property-read string|null $expiryMonth
 * @property-read string|null $expiryYear
 * @property-read mixed $issuer
 * @property-read string|null $type
 * @property-read string|null $level
 * @property-read string|null $regulatedFlag
 */
final class Card extends Model
{}
