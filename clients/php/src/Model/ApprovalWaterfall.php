<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * From what shoppers wanted to pay to what is settled, in one currency. What is lost adds up.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $currency
 * @property-read int $checkouts
 * @property-read list<ApprovalWaterfallSteps> $steps
 */
final class ApprovalWaterfall extends Model
{
    protected const TYPES = ['steps' => ApprovalWaterfallSteps::class];
}
