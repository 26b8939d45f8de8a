<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * Where to switch it on, or to try it.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $name
 * @property-read string $page
 */
final class ApprovalGainSwitch extends Model
{}
