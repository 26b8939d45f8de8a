<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * The plan as it stands.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read bool $active
 * @property-read string $state
 * @property-read string|null $reason
 * @property-read string $expression
 * @property-read string $timeZone
 * @property-read string|null $endsAt
 * @property-read list<string> $nextRuns
 */
final class SchedulePlan extends Model
{}
