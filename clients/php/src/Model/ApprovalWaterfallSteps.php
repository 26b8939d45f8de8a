<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * A step.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $step
 * @property-read string $description
 * @property-read bool $lost
 * @property-read int $purchases
 * @property-read string $amount
 * @property-read string $share
 */
final class ApprovalWaterfallSteps extends Model
{}
