<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Pay, authorise; capture, refund and reverse; read. */
final class Payments
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * A payment: paymentType DB takes the money at once, PA reserves it.
     *
     * @param array<string, mixed> $parameters
     */
    public function create(#[\SensitiveParameter] array $parameters, string $idempotencyKey = ''): Model\Payment
    {
        return $this->client->request('POST', '/v1/payments', $parameters, Model\Payment::class, $idempotencyKey);
    }

    public function get(string $paymentId): Model\Payment
    {
        return $this->client->request('GET', Client::path('v1', 'payments', $paymentId), [], Model\Payment::class);
    }

    /**
     * Any operation that refers to a payment; paymentType names it.
     *
     * @param array<string, mixed> $parameters
     */
    public function followUp(string $paymentId, array $parameters, string $idempotencyKey = ''): Model\Payment
    {
        $path = Client::path('v1', 'payments', $paymentId);
        return $this->client->request('POST', $path, $parameters, Model\Payment::class, $idempotencyKey);
    }

    /** Take a reserved sum, or a part of it. */
    public function capture(string $paymentId, string $amount, string $currency, string $idempotencyKey = ''): Model\Payment
    {
        $parameters = ['paymentType' => 'CP', 'amount' => $amount, 'currency' => $currency];
        return $this->followUp($paymentId, $parameters, $idempotencyKey);
    }

    /** Give money back: of a payment or a capture, whole or in parts. */
    public function refund(string $paymentId, string $amount, string $currency, string $idempotencyKey = ''): Model\Payment
    {
        $parameters = ['paymentType' => 'RF', 'amount' => $amount, 'currency' => $currency];
        return $this->followUp($paymentId, $parameters, $idempotencyKey);
    }

    /** Undo what is not captured or settled yet. */
    public function reverse(string $paymentId, string $idempotencyKey = ''): Model\Payment
    {
        return $this->followUp($paymentId, ['paymentType' => 'RV'], $idempotencyKey);
    }
}
