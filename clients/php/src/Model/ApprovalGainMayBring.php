<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * How much of it the switch may bring; missing where too few payments can be compared.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $low
 * @property-read string $high
 */
final class ApprovalGainMayBring extends Model
{}
