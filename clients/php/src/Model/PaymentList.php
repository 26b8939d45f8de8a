<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Transactions, the newest first.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<Listed> $payments
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class PaymentList extends Answer
{
    protected const TYPES = ['payments' => Listed::class, 'result' => Result::class];
}
