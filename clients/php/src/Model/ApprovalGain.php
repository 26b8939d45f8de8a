<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * A way to more approvals.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $way
 * @property-read string $title
 * @property-read string $currency
 * @property-read string $lost
 * @property-read ApprovalGainMayBring|null $mayBring
 * @property-read string $evidence
 * @property-read ApprovalGainSwitch $switch
 */
final class ApprovalGain extends Model
{
    protected const TYPES = ['mayBring' => ApprovalGainMayBring::class, 'switch' => ApprovalGainSwitch::class];
}
