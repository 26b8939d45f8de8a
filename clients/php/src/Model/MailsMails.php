<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * MailsMails.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $kind
 * @property-read string $state
 * @property-read string|null $mandate
 * @property-read string $to
 * @property-read string|null $language
 * @property-read string $subject
 * @property-read string $text
 * @property-read int|null $tries
 * @property-read string|null $failure
 * @property-read string|null $at
 */
final class MailsMails extends Model
{}
