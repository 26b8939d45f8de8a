<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/**
 * The gateway could not be reached, or did not answer in time. A payment may have been made: send the same request with
 * the same idempotencyKey, and it is made once.
 */
final class NoAnswerException extends TollhouseException
{
    public function __construct(string $message, public readonly string $idempotencyKey = '')
    {
        parent::__construct($message);
    }
}
