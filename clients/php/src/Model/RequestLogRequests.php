<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * RequestLogRequests.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $ndc
 * @property-read string $at
 * @property-read string $method
 * @property-read string $path
 * @property-read int $status
 * @property-read string $resultCode
 * @property-read int $durationMs
 * @property-read string|null $payment
 */
final class RequestLogRequests extends Model
{}
