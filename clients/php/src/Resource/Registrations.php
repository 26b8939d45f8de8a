<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Stored means of payment. */
final class Registrations
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Store a means of payment.
     *
     * @param array<string, mixed> $parameters
     */
    public function create(#[\SensitiveParameter] array $parameters, string $idempotencyKey = ''): Model\Registration
    {
        $path = '/v1/registrations';
        return $this->client->request('POST', $path, $parameters, Model\Registration::class, $idempotencyKey);
    }

    /** What is stored. */
    public function get(string $registrationId): Model\Registration
    {
        $path = Client::path('v1', 'registrations', $registrationId);
        return $this->client->request('GET', $path, [], Model\Registration::class);
    }

    /**
     * Change it: a card's new expiry date.
     *
     * @param array<string, mixed> $parameters
     */
    public function update(string $registrationId, array $parameters, string $idempotencyKey = ''): Model\Registration
    {
        $path = Client::path('v1', 'registrations', $registrationId);
        return $this->client->request('POST', $path, $parameters, Model\Registration::class, $idempotencyKey);
    }

    /** Keep it longer. */
    public function extend(string $registrationId, string $idempotencyKey = ''): Model\Registration
    {
        $path = Client::path('v1', 'registrations', $registrationId, 'extend');
        return $this->client->request('POST', $path, [], Model\Registration::class, $idempotencyKey);
    }

    /** Forget it. */
    public function delete(string $registrationId): Model\Registration
    {
        $path = Client::path('v1', 'registrations', $registrationId);
        return $this->client->request('DELETE', $path, [], Model\Registration::class);
    }

    /**
     * A payment with it.
     *
     * @param array<string, mixed> $parameters
     */
    public function pay(string $registrationId, #[\SensitiveParameter] array $parameters, string $idempotencyKey = ''): Model\Payment
    {
        $path = Client::path('v1', 'registrations', $registrationId, 'payments');
        return $this->client->request('POST', $path, $parameters, Model\Payment::class, $idempotencyKey);
    }
}
