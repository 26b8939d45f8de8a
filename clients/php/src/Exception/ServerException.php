<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** 5xx: the gateway's fault. Repeat a payment only with the same key. */
final class ServerException extends ApiException
{
}
