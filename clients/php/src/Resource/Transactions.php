<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** Find payments again. */
final class Transactions
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * A transaction; includeLinkedTransactions adds its captures, refunds and the rest of its chain.
     *
     * @param array<string, mixed> $filters
     */
    public function get(string $transactionId, array $filters = []): Model\RecordList
    {
        $path = Client::path('v3', 'query', $transactionId);
        return $this->client->request('GET', $path, $filters, Model\RecordList::class);
    }

    /**
     * One page: by merchantTransactionId, or by date ['from' => …, 'to' => …] in UTC.
     *
     * @param array<string, mixed> $filters
     */
    public function list(array $filters): Model\RecordList
    {
        $path = '/v3/query';
        return $this->client->request('GET', $path, $filters, Model\RecordList::class);
    }

    /**
     * Every transaction of all pages, the oldest first.
     *
     * @param array<string, mixed> $filters
     * 
     * @return \Generator<int, Model\Listed>
     */
    public function iterate(array $filters): \Generator
    {
        $path = '/v3/query';
        for ($pageNo = 1;; ++$pageNo) {
            $page = $this->client->request('GET', $path, ['pageNo' => $pageNo] + $filters, Model\RecordList::class);
            yield from $page->records;
            if ($pageNo >= ($page->pages ?? 1)) {
                return;
            }
        }
    }
}
