<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Tools of the test environment; in live they are not found. */
final class TestTools
{
    public function __construct(private readonly Client $client)
    {
    }

    /** The merchant's time. */
    public function readClock(): Model\Clock
    {
        return $this->client->request('GET', '/v1/test/clock', [], Model\Clock::class);
    }

    /** Move the merchant's clock on; what falls due on the way is done. */
    public function advanceClock(int $seconds): Model\Clock
    {
        return $this->client->request('POST', '/v1/test/clock', ['advance' => $seconds], Model\Clock::class);
    }

    /** Back to the real time. */
    public function resetClock(): Model\Clock
    {
        return $this->client->request('DELETE', '/v1/test/clock', [], Model\Clock::class);
    }

    /** What the acquirer was sent for a payment, and what it answered, masked. */
    public function listAcquirerMessages(string $paymentId): Model\AcquirerMessages
    {
        return $this->client->request('GET', '/v1/test/acquirer/messages', ['id' => $paymentId], Model\AcquirerMessages::class);
    }

    /** The mails that a payment's shopper was sent. */
    public function listMails(string $paymentId): Model\Mails
    {
        return $this->client->request('GET', '/v1/test/mails', ['id' => $paymentId], Model\Mails::class);
    }

    /** What the bank reports of a prepayment: arrived or returned. */
    public function decideTransfer(string $paymentId, string $outcome): Model\Payment
    {
        return $this->client->request('POST', Client::path('v1', 'test', 'transfers', $paymentId), ['outcome' => $outcome], Model\Payment::class);
    }

    /**
     * A wallet's token as a shopper's device makes it.
     *
     * @param array<string, mixed> $parameters
     */
    public function createWalletToken(#[\SensitiveParameter] array $parameters): Model\WalletToken
    {
        return $this->client->request('POST', '/v1/test/wallet-token', $parameters, Model\WalletToken::class);
    }
}
