<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * ScheduleRuns.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $dueAt
 * @property-read string $state
 * @property-read int $attempt
 * @property-read string|null $id
 * @property-read string|null $code
 * @property-read string|null $retryAt
 * @property-read string|null $retryChance
 * @property-read string|null $missedUntil
 */
final class ScheduleRuns extends Model
{}
