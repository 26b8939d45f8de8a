<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Subscriptions: a registration that is charged again and again. */
final class Schedules
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * A subscription; job says when it charges.
     *
     * @param array<string, mixed> $parameters
     */
    public function create(array $parameters, string $idempotencyKey = ''): Model\Schedule
    {
        $path = '/v1/schedules';
        return $this->client->request('POST', $path, $parameters, Model\Schedule::class, $idempotencyKey);
    }

    /** Its plan and its last runs. */
    public function get(string $scheduleId): Model\Schedule
    {
        $path = Client::path('v1', 'schedules', $scheduleId);
        return $this->client->request('GET', $path, [], Model\Schedule::class);
    }

    /**
     * Change amount or times; what is not sent stays.
     *
     * @param array<string, mixed> $parameters
     */
    public function reschedule(string $scheduleId, array $parameters, string $idempotencyKey = ''): Model\Schedule
    {
        $path = Client::path('v1', 'schedules', $scheduleId, 'reschedule');
        return $this->client->request('POST', $path, $parameters, Model\Schedule::class, $idempotencyKey);
    }

    /**
     * Give notice.
     *
     * @param array<string, mixed> $parameters
     */
    public function deschedule(string $scheduleId, array $parameters = [], string $idempotencyKey = ''): Model\Schedule
    {
        $path = Client::path('v1', 'schedules', $scheduleId, 'deschedule');
        return $this->client->request('POST', $path, $parameters, Model\Schedule::class, $idempotencyKey);
    }
}
