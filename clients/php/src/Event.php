<?php

declare(strict_types=1);

namespace Tollhouse;

/** A webhook. Type: PAYMENT, REGISTRATION, SCHEDULE, RISK, or test; action: CREATED, UPDATED … */
final class Event
{
    /** @param array<string, mixed> $payload the object as the API answers it, and more */
    public function __construct(
        public readonly string $type,
        public readonly string $action,
        public readonly array $payload,
    ) {
    }

    /** The payload as a payment; for type PAYMENT. */
    public function payment(): Model\Payment
    {
        return new Model\Payment($this->payload);
    }

    /** What it is about. Keep the highest sequence of each, and do nothing for a lower one. */
    public function subject(): string
    {
        return "$this->type " . ($this->payload['shortId'] ?? '');
    }

    public function sequence(): int
    {
        return (int) ($this->payload['sequence'] ?? 0);
    }

    /** @return array<string, string> */
    public function __debugInfo(): array
    {
        return ['type' => $this->type, 'action' => $this->action];
    }
}
