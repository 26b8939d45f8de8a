<?php

declare(strict_types=1);

namespace Tollhouse\Http;

/** Sends one request. Write your own for a platform that has an HTTP client of its own; others use PSR-18. */
interface Transport
{
    /**
     * @param array<string, string> $headers
     *
     * @throws TransportException where no answer came
     */
    public function send(
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
    ): Response;
}
