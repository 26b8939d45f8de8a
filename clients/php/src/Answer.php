<?php

declare(strict_types=1);

namespace Tollhouse;

/** An answer with a result. */
abstract class Answer extends Model
{
    private int $httpStatus = 200;
    private string $idempotencyKey = '';
    private bool $replayed = false;

    /** @internal */
    public function withMeta(int $httpStatus, string $idempotencyKey, bool $replayed): static
    {
        $this->httpStatus = $httpStatus;
        $this->idempotencyKey = $idempotencyKey;
        $this->replayed = $replayed;
        return $this;
    }

    /** The result code: 000.100.110. */
    public function code(): string
    {
        return (string) ($this->toArray()['result']['code'] ?? '');
    }

    /** approved, review (approved, to be looked at), pending, chargeback, or declined. */
    public function outcome(): string
    {
        foreach (Constants::OUTCOME_PATTERNS as [$name, $pattern]) {
            if (preg_match($pattern, $this->code())) {
                return $name;
            }
        }
        return 'declined';
    }

    public function httpStatus(): int
    {
        return $this->httpStatus;
    }

    /** The key it was asked with. */
    public function idempotencyKey(): string
    {
        return $this->idempotencyKey;
    }

    /** Whether it is the answer to an earlier request with this key. */
    public function replayed(): bool
    {
        return $this->replayed;
    }
}
