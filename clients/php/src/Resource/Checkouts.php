<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Payments that the shopper makes in the payment form. */
final class Checkouts
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * A checkout; its id goes into the page with the payment form.
     *
     * @param array<string, mixed> $parameters
     */
    public function create(array $parameters, string $idempotencyKey = ''): Model\Checkout
    {
        $path = '/v1/checkouts';
        return $this->client->request('POST', $path, $parameters, Model\Checkout::class, $idempotencyKey);
    }

    /**
     * Change a checkout that is not paid.
     *
     * @param array<string, mixed> $parameters
     */
    public function update(string $checkoutId, array $parameters, string $idempotencyKey = ''): Model\Checkout
    {
        $path = Client::path('v1', 'checkouts', $checkoutId);
        return $this->client->request('POST', $path, $parameters, Model\Checkout::class, $idempotencyKey);
    }

    /** What became of it, when the shopper is back in the shop. */
    public function getPayment(string $checkoutId): Model\Payment
    {
        $path = Client::path('v1', 'checkouts', $checkoutId, 'payment');
        return $this->client->request('GET', $path, [], Model\Payment::class);
    }

    /** The registration that a checkout without a payment has made. */
    public function getRegistration(string $checkoutId): Model\Registration
    {
        $path = Client::path('v1', 'checkouts', $checkoutId, 'registration');
        return $this->client->request('GET', $path, [], Model\Registration::class);
    }
}
