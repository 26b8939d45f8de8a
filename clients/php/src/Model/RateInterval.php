<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * A share with its interval; missing where nothing was counted.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $rate
 * @property-read string $low
 * @property-read string $high
 */
final class RateInterval extends Model
{}
