<?php

declare(strict_types=1);

namespace Tollhouse\Http;

/** No answer came. Its message holds nothing of what was sent, and it has no previous exception that does. */
final class TransportException extends \RuntimeException
{
}
