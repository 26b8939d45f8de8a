<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

use Automattic\WooCommerce\Caches\OrderCache;
use Automattic\WooCommerce\Internal\DataStores\Orders\OrdersTableDataStore;
use Automattic\WooCommerce\Internal\DataStores\Orders\OrdersTableDataStoreMeta;
use Tollhouse\Exception\ApiException;
use Tollhouse\Exception\TollhouseException;
use Tollhouse\Model\Listed;

/**
 * Reads what became of an order from the gateway, and writes it into the order. Called after the shopper's return and by
 * webhooks; neither is believed. The state is made of the gateway's records alone, so events may come twice, late or in
 * another order.
 */
final class Results
{
    /** Outcomes of refunds that count: an acquirer with batches answers pending, and does it. */
    public const ACCEPTED = ['approved', 'review', 'pending'];
    public const NOTHING_FOUND = '700.400.580';
    private const WAITING_META = '_tollhouse_waiting';
    private const SURPLUS_META = '_tollhouse_surplus';
    private const LOCK_S = 20;
    /** Those of WC_Order::payment_complete(). */
    private const PAYABLE = ['on-hold', 'pending', 'failed', 'cancelled'];

    public function __construct(private readonly Gateway $gateway)
    {
    }

    /**
     * Bring an order to the state that it has at the gateway. $returned: its shopper has come back, so a decline is
     * final; else they may still pay on the page.
     *
     * @return bool whether the gateway has taken money for it, or waits for it
     *
     * @throws TollhouseException
     * @throws \InvalidArgumentException for settings with which there can be no client
     */
    public function read(\WC_Order $order, bool $returned = false): bool
    {
        return self::lock($order, fn (\WC_Order $fresh): bool => $this->write($fresh, $returned));
    }

    /**
     * One request at a time works on an order: the return and a webhook come at the same moment, and shoppers press twice.
     * $work gets the order as it is once the lock is held.
     *
     * @template T
     *
     * @param callable(\WC_Order): T $work
     *
     * @return T
     *
     * @throws TollhouseException if another request does not end
     */
    public static function lock(\WC_Order $order, callable $work): mixed
    {
        global $wpdb;
        $name = $wpdb->prefix . 'tollhouse_' . $order->get_id();
        if ((string) $wpdb->get_var($wpdb->prepare('SELECT GET_LOCK(%s, %d)', $name, self::LOCK_S)) !== '1') {
            throw new TollhouseException('another request works on this order');
        }
        try {
            return $work(self::readAfresh($order->get_id()));
        } finally {
            $wpdb->get_var($wpdb->prepare('SELECT RELEASE_LOCK(%s)', $name));
        }
    }

    /** The order as it is in the database: what this request has read before may be kept in several caches. */
    private static function readAfresh(int $id): \WC_Order
    {
        clean_post_cache($id);
        if (class_exists(OrderCache::class)) {
            wc_get_container()->get(OrderCache::class)->remove($id);
        }
        foreach ([OrdersTableDataStore::class, OrdersTableDataStoreMeta::class] as $name) {
            $store = class_exists($name) ? wc_get_container()->get($name) : null;
            if (is_callable([$store, 'clear_cached_data'])) {  // not in older versions
                $store->clear_cached_data([$id]);
            }
        }
        $order = wc_get_order($id);
        if (!$order instanceof \WC_Order) {
            throw new TollhouseException("order $id is gone");
        }
        $order->read_meta_data(true);
        return $order;
    }

    private function write(\WC_Order $order, bool $returned): bool
    {
        $records = $this->list($order);
        $debits = self::listDebits($records, 'approved', 'review');
        if ($debits !== []) {
            $this->writePaid($order, $records, $debits);
            return true;
        }
        if (self::listDebits($records, 'pending') !== []) {
            if ($order->has_status(['pending', 'failed'])) {
                $order->update_meta_data(self::WAITING_META, 'yes');
                $order->update_status('on-hold', 'The gateway waits for the shopper\'s bank.');
            }
            return true;
        }
        $declined = self::listDebits($records, 'declined');
        $waited = $order->has_status('on-hold') && $order->get_meta(self::WAITING_META);
        if ($declined !== [] && ($waited || ($returned && $order->has_status('pending')))) {
            $order->delete_meta_data(self::WAITING_META);
            $order->update_status('failed', 'Declined at the gateway: ' . end($declined)->code());
        }
        return false;
    }

    /**
     * @param list<Listed> $records
     * @param non-empty-list<Listed> $debits that took money
     */
    private function writePaid(\WC_Order $order, array $records, array $debits): void
    {
        $own = self::findFirst($debits, static fn (Listed $one): bool => $one->id === $order->get_transaction_id());
        if ($own === null && self::isPayable($order)) {
            $total = self::describeTotal($order);
            $own = self::findFirst($debits, static fn (Listed $one): bool => "$one->amount $one->currency" === $total);
            $own ??= $debits[0];
            $this->complete($order, $own, $total);
        }
        foreach ($debits as $one) {
            if ($one !== $own) {
                self::noteSurplus($order, $one);
            }
        }
        if ($own !== null) {
            (new Refunds($this->gateway))->write($order, $records, $own);
        }
    }

    private function complete(\WC_Order $order, Listed $paid, string $total): void
    {
        $order->set_payment_method($this->gateway);  // the shopper may have chosen another one meanwhile
        if ("$paid->amount $paid->currency" === $total) {
            $order->payment_complete($paid->id);
            return;
        }
        $order->set_transaction_id($paid->id);
        $order->update_status('on-hold', "$paid->amount $paid->currency was paid instead of $total: $paid->id");
    }

    /** Money for an order that does not wait for it: paid in another way, paid twice, or refunded. */
    private static function noteSurplus(\WC_Order $order, Listed $one): void
    {
        $known = $order->get_meta(self::SURPLUS_META) ?: [];
        if (in_array($one->id, $known, true)) {
            return;
        }
        $order->update_meta_data(self::SURPLUS_META, [...$known, $one->id]);
        $order->save();
        $text = "Paid twice: $one->amount $one->currency came at the gateway, but this order did not wait for it. "
            . "Refund $one->id there.";
        $order->add_order_note($text);
        Gateway::log($order, $text);
    }

    private static function isPayable(\WC_Order $order): bool
    {
        $paid = $order->get_date_paid() && (string) $order->get_transaction_id() !== '';
        $states = apply_filters('woocommerce_valid_order_statuses_for_payment_complete', self::PAYABLE, $order);
        return !$paid && $order->has_status($states);
    }

    /** "92.00 EUR"; a total that the gateway cannot have is equal to no payment. */
    private static function describeTotal(\WC_Order $order): string
    {
        try {
            return Gateway::formatAmount($order->get_total()) . " {$order->get_currency()}";
        } catch (\InvalidArgumentException) {
            return "{$order->get_total()} {$order->get_currency()}";
        }
    }

    /** @return list<Listed> the oldest first */
    public function list(\WC_Order $order): array
    {
        try {
            $found = $this->gateway->buildClient()->transactions->list([
                'merchantTransactionId' => $order->get_order_key(),
                'includeLinkedTransactions' => true,
                'limit' => 500,
            ])->records;
        } catch (ApiException $fault) {
            if ($fault->resultCode === self::NOTHING_FOUND) {
                return [];
            }
            throw $fault;
        }
        usort($found, static fn (Listed $one, Listed $other): int => $one->id <=> $other->id);  // ids rise with time
        return $found;
    }

    /**
     * The debits with one of these outcomes; what follows a payment is none.
     *
     * @param list<Listed> $records
     *
     * @return list<Listed>
     */
    private static function listDebits(array $records, string ...$outcomes): array
    {
        return array_values(array_filter($records, static fn (Listed $one): bool => $one->paymentType === 'DB'
            && !isset($one->toArray()['referencedId']) && in_array($one->outcome(), $outcomes, true)));
    }

    /**
     * @param list<Listed> $records
     * @param callable(Listed): bool $test
     */
    private static function findFirst(array $records, callable $test): ?Listed
    {
        return array_values(array_filter($records, $test))[0] ?? null;
    }
}
