<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * What came of the request.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $code
 * @property-read string $description
 * @property-read string|null $avsResponse
 * @property-read string|null $cvvResponse
 * @property-read list<ParameterError>|null $parameterErrors
 */
final class Result extends Model
{
    protected const TYPES = ['parameterErrors' => ParameterError::class];
}
