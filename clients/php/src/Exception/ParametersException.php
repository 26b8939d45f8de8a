<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** 400: parameters are missing or wrong; all of them are in errors. Nothing was made. */
final class ParametersException extends ApiException
{
}
