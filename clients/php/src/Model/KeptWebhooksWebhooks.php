<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * KeptWebhooksWebhooks.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read int $number
 * @property-read string $at
 * @property-read mixed $headers
 * @property-read string $body
 */
final class KeptWebhooksWebhooks extends Model
{}
