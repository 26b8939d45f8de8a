<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A transaction in a list: the payment object, its own time and number with it.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string|null $shortId
 * @property-read string|null $paymentType
 * @property-read string|null $paymentMethod
 * @property-read string|null $paymentBrand
 * @property-read string|null $amount
 * @property-read string|null $currency
 * @property-read string|null $descriptor
 * @property-read Result $result
 * @property-read ListedResultDetails|null $resultDetails
 * @property-read string|null $requestTimestamp
 * @property-read string|null $timestamp
 * @property-read string|null $ndc
 */
final class Listed extends Answer
{
    protected const TYPES = ['result' => Result::class, 'resultDetails' => ListedResultDetails::class];
}
