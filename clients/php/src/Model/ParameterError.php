<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * One fault. All faults of a request are told at once.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $name
 * @property-read string|null $value
 * @property-read string $message
 */
final class ParameterError extends Model
{}
