<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * ResultCodesResultCodes.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $code
 * @property-read string $description
 * @property-read string $family
 */
final class ResultCodesResultCodes extends Model
{}
