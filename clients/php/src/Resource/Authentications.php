<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** 3-D Secure without a payment. */
final class Authentications
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Authenticate a cardholder. Takes no key, and is not repeated.
     *
     * @param array<string, mixed> $parameters
     */
    public function create(#[\SensitiveParameter] array $parameters): Model\Authentication
    {
        return $this->client->request('POST', '/v1/threeDSecure', $parameters, Model\Authentication::class);
    }

    /** How it went. */
    public function get(string $authenticationId): Model\Authentication
    {
        $path = Client::path('v1', 'threeDSecure', $authenticationId);
        return $this->client->request('GET', $path, [], Model\Authentication::class);
    }
}
