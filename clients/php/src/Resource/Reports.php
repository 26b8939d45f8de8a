<?php

declare(strict_types=1);

namespace Tollhouse\Resource;

use Tollhouse\Client;
use Tollhouse\Model;

/** What institutes have paid out. */
final class Reports
{
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Every settlement of all pages; date ['from' => …, 'to' => …].
     *
     * @param array<string, mixed> $filters
     * 
     * @return \Generator<int, Model\Settlement>
     */
    public function settlements(array $filters): \Generator
    {
        $path = '/reports/v2/reconciliations/aggregations';
        for ($pageNo = 1;; ++$pageNo) {
            $page = $this->client->request('GET', $path, ['pageNo' => $pageNo] + $filters, Model\Settlements::class);
            yield from $page->aggregations;
            if ($pageNo >= ($page->pages ?? 1)) {
                return;
            }
        }
    }

    /**
     * Every record of a settlement, under the names of the reconciliation file's columns.
     *
     * @param array<string, mixed> $filters
     * 
     * @return \Generator<int, array<string, mixed>>
     */
    public function settlementRecords(string $settlementId, array $filters = []): \Generator
    {
        $path = Client::path('reports', 'v2', 'reconciliations', 'aggregations', $settlementId);
        for ($pageNo = 1;; ++$pageNo) {
            $page = $this->client->request('GET', $path, ['pageNo' => $pageNo] + $filters, Model\SettlementRecords::class);
            yield from $page->reconciliations;
            if ($pageNo >= ($page->pages ?? 1)) {
                return;
            }
        }
    }
}
