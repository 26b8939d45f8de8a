<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** 429: too many requests; ask again after retryAfter seconds. */
final class RateLimitException extends ApiException
{
}
