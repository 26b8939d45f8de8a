<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * What an institute paid out at once.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string|null $reference
 * @property-read string $date
 * @property-read string $currency
 * @property-read string $amount
 * @property-read string $fee
 * @property-read int $count
 * @property-read mixed $clearingInstitute
 * @property-read mixed $merchantAccount
 * @property-read list<mixed> $records
 * @property-read mixed $matchedTransactions
 */
final class Settlement extends Model
{}
