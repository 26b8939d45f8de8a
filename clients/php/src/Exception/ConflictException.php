<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** 409: a request with this idempotency key is still being made. */
final class ConflictException extends ApiException
{
}
