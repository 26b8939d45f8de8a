<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** A webhook that was not made with one of your secrets, is too old, or cannot be read. Answer 400. */
final class WebhookVerificationException extends TollhouseException
{
}
