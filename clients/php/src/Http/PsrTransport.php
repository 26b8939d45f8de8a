<?php

declare(strict_types=1);

namespace Tollhouse\Http;

use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;

/** Any HTTP client of PSR-18. */
final class PsrTransport implements Transport
{
    public function __construct(
        private readonly ClientInterface $http,
        private readonly RequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
    ) {
    }

    /** What is passed; Guzzle for what is not. */
    public static function of(
        ?ClientInterface $http,
        ?RequestFactoryInterface $requests,
        ?StreamFactoryInterface $streams,
        float $timeout,
    ): self {
        if (($http === null || $requests === null || $streams === null) && !class_exists(\GuzzleHttp\Client::class)) {
            throw new \LogicException('Pass http, requests and streams (PSR-18, PSR-17), or install guzzlehttp/guzzle.');
        }
        return new self(
            $http ?? new \GuzzleHttp\Client(['timeout' => $timeout]),
            $requests ?? new \GuzzleHttp\Psr7\HttpFactory(),
            $streams ?? new \GuzzleHttp\Psr7\HttpFactory(),
        );
    }

    public function send(
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
    ): Response {
        $request = $this->requests->createRequest($method, $url);
        foreach ($headers as $name => $value) {
            $request = $request->withHeader($name, $value);
        }
        if ($body !== '') {
            $request = $request->withBody($this->streams->createStream($body));
        }
        try {
            $answer = $this->http->sendRequest($request);
            $text = (string) $answer->getBody();
        } catch (ClientExceptionInterface | \RuntimeException $fault) {
            // Without the cause: HTTP clients keep the request in it.
            throw new TransportException($fault::class . ': ' . $fault->getMessage());
        }
        $found = array_map(static fn (array $values): string => implode(', ', $values), $answer->getHeaders());
        return new Response($answer->getStatusCode(), $found, $text);
    }
}
