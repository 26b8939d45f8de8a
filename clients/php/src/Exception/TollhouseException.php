<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** Any exception of this package. None holds what was sent: no card data, no token. */
class TollhouseException extends \RuntimeException
{
}
