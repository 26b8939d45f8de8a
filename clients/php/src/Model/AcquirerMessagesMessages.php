<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * AcquirerMessagesMessages.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $connector
 * @property-read string $kind
 * @property-read mixed $sent
 * @property-read mixed $received
 * @property-read int|null $durationMs
 * @property-read string|null $at
 */
final class AcquirerMessagesMessages extends Model
{}
