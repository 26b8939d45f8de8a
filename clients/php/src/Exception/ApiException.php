<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** A request that was refused. */
class ApiException extends TollhouseException
{
    /** The result code. */
    public readonly string $resultCode;
    public readonly string $description;
    /** Names the request to the gateway's staff. */
    public readonly string $ndc;
    /** @var list<array{name: string, message: string, value?: string}> What is wrong, by parameter. */
    public readonly array $errors;

    /** @param array<string, mixed> $body the answer */
    final public function __construct(
        public readonly int $status,
        public readonly array $body,
        public readonly ?int $retryAfter = null,
    ) {
        $result = $body['result'] ?? [];
        $this->resultCode = $result['code'] ?? '';
        $this->description = $result['description'] ?? '';
        $this->ndc = $body['ndc'] ?? '';
        $this->errors = $result['parameterErrors'] ?? [];
        $told = implode('; ', array_map(static fn (array $one) => "{$one['name']}: {$one['message']}", $this->errors));
        parent::__construct(rtrim("HTTP $status $this->resultCode $this->description") . ($told ? ": $told" : ''));
    }

    /**
     * @internal
     *
     * @param array<string, mixed> $body
     */
    public static function of(int $status, array $body, ?int $retryAfter): self
    {
        $class = match (true) {
            $status === 401, $status === 403 => AuthenticationException::class,
            $status === 404 => NotFoundException::class,
            $status === 409 => ConflictException::class,
            $status === 429 => RateLimitException::class,
            $status >= 500 => ServerException::class,
            !empty($body['result']['parameterErrors']) => ParametersException::class,
            default => self::class,
        };
        return new $class($status, $body, $retryAfter);
    }
}
