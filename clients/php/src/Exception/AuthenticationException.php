<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** 401 or 403: the token is missing, wrong, or may not do this for this entityId. */
final class AuthenticationException extends ApiException
{
}
