<?php

declare(strict_types=1);

namespace Tollhouse\Http;

/** An answer as it came. */
final class Response
{
    /** @var array<string, string> */
    private readonly array $headers;

    /** @param array<string, string> $headers */
    public function __construct(public readonly int $status, array $headers, public readonly string $body)
    {
        $this->headers = array_change_key_case($headers);
    }

    /** A header of any case; empty where it was not sent. */
    public function header(string $name): string
    {
        return $this->headers[strtolower($name)] ?? '';
    }
}
