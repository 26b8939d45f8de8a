<?php

declare(strict_types=1);

namespace Tollhouse;

use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Tollhouse\Exception\ApiException;
use Tollhouse\Exception\NoAnswerException;
use Tollhouse\Http\PsrTransport;
use Tollhouse\Http\Response;
use Tollhouse\Http\Transport;
use Tollhouse\Http\TransportException;

/** A gateway. Its token must never reach a browser. */
final class Client
{
    public const VERSION = '0.1.0';
    /** Statuses after which the same request is sent again, where that is safe. */
    private const REPEATED_STATUSES = [409, 429, 502, 503, 504];
    private const MAX_PAUSE_S = 30;
    private const FIRST_PAUSE_S = 0.5;

    public readonly Resource\Payments $payments;
    public readonly Resource\Checkouts $checkouts;
    public readonly Resource\PaymentLinks $paymentLinks;
    public readonly Resource\Registrations $registrations;
    public readonly Resource\Schedules $schedules;
    public readonly Resource\Authentications $authentications;
    public readonly Resource\Transactions $transactions;
    public readonly Resource\Reports $reports;
    public readonly Resource\TestTools $test;
    private readonly Transport $transport;

    /**
     * @param string $entityId the channel's
     * @param int $maxRetries further tries of what is safe to repeat
     * @param float $timeout seconds for one try; used only where no $http is passed
     * @param ?ClientInterface $http Guzzle, if it is installed and nothing is passed
     * @param ?Transport $transport what sends requests where there is no client of PSR-18
     */
    public function __construct(
        private readonly string $baseUrl,
        #[\SensitiveParameter] private readonly string $token,
        private readonly string $entityId = '',
        private readonly int $maxRetries = 2,
        float $timeout = 60.0,
        ?ClientInterface $http = null,
        ?RequestFactoryInterface $requests = null,
        ?StreamFactoryInterface $streams = null,
        ?Transport $transport = null,
    ) {
        if (!preg_match('#^https?://[^/]#', $baseUrl)) {
            throw new \InvalidArgumentException('baseUrl is no address of a gateway: https://…');
        }
        if ($token === '') {
            throw new \InvalidArgumentException('token is empty');
        }
        $this->transport = $transport ?? PsrTransport::of($http, $requests, $streams, $timeout);
        $this->payments = new Resource\Payments($this);
        $this->checkouts = new Resource\Checkouts($this);
        $this->paymentLinks = new Resource\PaymentLinks($this);
        $this->registrations = new Resource\Registrations($this);
        $this->schedules = new Resource\Schedules($this);
        $this->authentications = new Resource\Authentications($this);
        $this->transactions = new Resource\Transactions($this);
        $this->reports = new Resource\Reports($this);
        $this->test = new Resource\TestTools($this);
    }

    public function listResultCodes(): Model\ResultCodes
    {
        return $this->request('GET', '/v1/resultcodes', [], Model\ResultCodes::class, entity: false);
    }

    /**
     * Any request, for what has no method here. $key: null sends no idempotency key, '' a new one.
     *
     * @template T of Answer
     *
     * @param array<string, mixed> $parameters
     * @param class-string<T> $answer
     *
     * @return T
     */
    public function request(
        string $method,
        string $path,
        #[\SensitiveParameter] array $parameters,
        string $answer,
        ?string $key = null,
        bool $entity = true,
    ): Answer {
        $pairs = self::flatten($parameters);
        if ($entity && $this->entityId !== '') {
            $pairs += ['entityId' => $this->entityId];
        }
        $key = $key === '' ? bin2hex(random_bytes(16)) : (string) $key;
        $query = http_build_query($pairs);
        $posts = $method === 'POST';
        $url = rtrim($this->baseUrl, '/') . $path . ($posts || $query === '' ? '' : "?$query");
        $headers = $this->listHeaders($posts, $key);
        $repeatable = $key !== '' || $method === 'GET';
        for ($tried = 1;; ++$tried) {
            $response = null;
            $reason = '';
            try {
                $response = $this->transport->send($method, $url, $headers, $posts ? $query : '');
            } catch (TransportException $fault) {
                $reason = $fault->getMessage();
            }
            $pause = $repeatable ? $this->findPause($response, $tried) : null;
            if ($pause !== null) {
                usleep((int) ($pause * 1_000_000));
                continue;
            }
            if ($response === null) {
                throw new NoAnswerException($reason, $key);
            }
            return self::read($response, $key, $answer);
        }
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['baseUrl' => $this->baseUrl, 'entityId' => $this->entityId];
    }

    /** A path; an empty part would name another resource, and so would dots. */
    public static function path(string ...$parts): string
    {
        if (in_array('', $parts, true)) {
            throw new \InvalidArgumentException('an id is empty');
        }
        if (array_intersect($parts, ['.', '..']) !== []) {
            throw new \InvalidArgumentException('an id is only dots');
        }
        return '/' . implode('/', array_map('rawurlencode', $parts));
    }

    /**
     * Nested parameters by their full names: card.number, cart.items[0].name.
     *
     * @param array<array-key, mixed> $parameters
     *
     * @return array<string, string>
     *
     * @throws \TypeError for a float: binary fractions are not money
     */
    public static function flatten(#[\SensitiveParameter] array $parameters, string $name = ''): array
    {
        $found = [];
        $listed = $name !== '' && $parameters !== [] && array_is_list($parameters);
        foreach ($parameters as $key => $value) {
            $mapped = in_array($name, Constants::MAP_PARAMETERS, true);
            $full = $listed || $mapped ? "{$name}[$key]" : ($name === '' ? (string) $key : "$name.$key");
            if (is_array($value)) {
                $found += self::flatten($value, $full);
            } elseif (is_bool($value)) {
                $found[$full] = $value ? 'true' : 'false';
            } elseif (is_string($value) || is_int($value) || $value instanceof \Stringable) {
                $found[$full] = (string) $value;
            } elseif ($value !== null) {
                throw new \TypeError($full . ' is a ' . get_debug_type($value) . '; send a text, a whole number or a bool');
            }
        }
        return $found;
    }

    /** @return array<string, string> */
    private function listHeaders(bool $posts, string $key): array
    {
        return [
            'Authorization' => "Bearer $this->token",
            'Accept' => 'application/json',
            'User-Agent' => 'tollhouse-php/' . self::VERSION,
            ...($key === '' ? [] : ['Idempotency-Key' => $key]),
            ...($posts ? ['Content-Type' => 'application/x-www-form-urlencoded'] : []),
        ];
    }

    private function findPause(?Response $response, int $tried): ?float
    {
        $passing = $response === null || in_array($response->status, self::REPEATED_STATUSES, true);
        if ($tried > $this->maxRetries || !$passing) {
            return null;
        }
        $wait = $response === null ? null : self::findRetryAfter($response);
        if ($wait !== null) {
            return $wait <= self::MAX_PAUSE_S ? (float) $wait : null;
        }
        return min(self::FIRST_PAUSE_S * 2 ** ($tried - 1), self::MAX_PAUSE_S) * random_int(500, 1000) / 1000;
    }

    private static function findRetryAfter(Response $response): ?int
    {
        $text = $response->header('Retry-After');
        return ctype_digit($text) ? (int) $text : null;
    }

    /**
     * @template T of Answer
     *
     * @param class-string<T> $answer
     *
     * @return T
     */
    private static function read(Response $response, string $key, string $answer): Answer
    {
        $status = $response->status;
        $body = json_decode($response->body, true);
        $body = is_array($body) ? $body : [];
        // A payment that exists was answered, whatever became of it; a refusal by limit has an id, too.
        if ($status < 400 || ($status === 400 && !empty($body['id']))) {
            if ($body === []) {
                throw new NoAnswerException("HTTP $status without JSON: is this a gateway?", $key);
            }
            return (new $answer($body))->withMeta($status, $key, $response->header('Idempotent-Replayed') === 'true');
        }
        throw ApiException::of($status, $body, self::findRetryAfter($response));
    }
}
