<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Addresses at which shoppers pay on the gateway's own page. */
final class PaymentLinks
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * A link; its url goes to the shopper.
     *
     * @param array<string, mixed> $parameters
     */
    public function create(array $parameters, string $idempotencyKey = ''): Model\PaymentLink
    {
        $path = '/v1/paymentLinks';
        return $this->client->request('POST', $path, $parameters, Model\PaymentLink::class, $idempotencyKey);
    }

    /** How it stands: its state, how often it was paid, and how much. */
    public function get(string $linkId): Model\PaymentLink
    {
        $path = Client::path('v1', 'paymentLinks', $linkId);
        return $this->client->request('GET', $path, [], Model\PaymentLink::class);
    }

    /**
     * One page, the newest links first.
     *
     * @param array<string, mixed> $filters
     */
    public function list(array $filters = []): Model\PaymentLinks
    {
        return $this->client->request('GET', '/v1/paymentLinks', $filters, Model\PaymentLinks::class);
    }

    /** Close it: it is neither opened nor paid any more. */
    public function deactivate(string $linkId): Model\PaymentLink
    {
        $path = Client::path('v1', 'paymentLinks', $linkId);
        return $this->client->request('DELETE', $path, [], Model\PaymentLink::class);
    }
}
