<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

use Tollhouse\Exception\TollhouseException;
use Tollhouse\Model\Listed;

/**
 * Refunds in both directions: those of WooCommerce are sent to the gateway, those that only the gateway has are written into
 * the order. Which records WooCommerce has counted is in the order's KNOWN_META: their ids, and while a refund is being
 * sent its reference.
 */
final class Refunds
{
    private const KNOWN_META = '_tollhouse_refunds';

    public function __construct(private readonly Gateway $gateway)
    {
    }

    /**
     * Refund at the gateway; WooCommerce has counted this refund already, and takes it back if this fails. Asked for again
     * because no answer came, it is made once: its reference names the sum of all refunds and its own amount.
     *
     * @param \WC_Order $order read under its lock
     *
     * @throws TollhouseException also where it is declined
     * @throws \InvalidArgumentException
     */
    public function send(\WC_Order $order, string $amount): void
    {
        $sum = Gateway::formatAmount($order->get_total_refunded());
        $base = "{$order->get_order_key()}-refund-$sum-$amount";
        $records = array_filter((new Results($this->gateway))->list($order), self::isMoved(...));
        for ($reference = $base, $number = 1;; $reference = "$base-" . $number++) {
            $made = array_filter($records, static fn (Listed $one): bool => self::findReference($one) === $reference);
            if ($made === []) {
                break;
            }
            $unknown = array_diff(array_column($made, 'id'), self::listKnown($order));
            if ($unknown !== []) {  // the answer to an earlier request was lost
                $id = reset($unknown);
                self::writeKnown($order, [...self::listKnown($order), $id]);
                $order->add_order_note("$amount {$order->get_currency()} was refunded at the gateway before: $id");
                return;
            }
        }
        $known = self::listKnown($order);
        self::writeKnown($order, [...$known, $reference]);  // a webhook may come before the answer
        try {
            $known[] = $id = $this->request($order, $amount, $reference);
        } finally {
            self::writeKnown($order, $known);
        }
        $order->add_order_note("$amount {$order->get_currency()} refunded at the gateway: $id");
    }

    /**
     * Refunds and reversals of the payment $paid that WooCommerce has not counted become refunds of the order; no money is
     * moved for them. A refund of WooCommerce whose answer was lost is among them.
     *
     * @param list<Listed> $records
     */
    public function write(\WC_Order $order, array $records, Listed $paid): void
    {
        foreach (array_filter($records, self::isMoved(...)) as $one) {
            $known = self::listKnown($order);
            $counted = in_array($one->id, $known, true) || in_array(self::findReference($one), $known, true);
            if ($counted || ($one->toArray()['referencedId'] ?? '') !== $paid->id) {
                continue;
            }
            self::writeKnown($order, [...$known, $one->id]);
            $made = wc_create_refund([
                'order_id' => $order->get_id(),
                'amount' => $one->amount,
                'reason' => "At the gateway: $one->id",
                'refund_payment' => false,
            ]);
            if (is_wp_error($made)) {
                $text = "Refund $one->id of $one->amount $one->currency at the gateway: {$made->get_error_message()}";
                $order->add_order_note($text);
                Gateway::log($order, $text);
            }
        }
    }

    private function request(\WC_Order $order, string $amount, string $reference): string
    {
        $payments = $this->gateway->buildClient()->payments;
        $refund = ['paymentType' => 'RF', 'amount' => $amount, 'currency' => $order->get_currency(),
            'merchantTransactionId' => $reference];
        $answer = $payments->followUp((string) $order->get_transaction_id(), $refund, $reference);
        if ($answer->replayed() && $answer->outcome() === 'declined') {  // an earlier one was declined, and moved nothing
            $answer = $payments->followUp((string) $order->get_transaction_id(), $refund);
        }
        if (!in_array($answer->outcome(), Results::ACCEPTED, true)) {
            throw new TollhouseException("The refund was declined: {$answer->code()}");
        }
        return $answer->id;
    }

    private static function isMoved(Listed $one): bool
    {
        return in_array($one->paymentType, ['RF', 'RV'], true) && in_array($one->outcome(), Results::ACCEPTED, true);
    }

    private static function findReference(Listed $one): string
    {
        return $one->toArray()['merchantTransactionId'] ?? '';
    }

    /** @return list<string> */
    private static function listKnown(\WC_Order $order): array
    {
        return $order->get_meta(self::KNOWN_META) ?: [];
    }

    /** @param list<string> $known */
    private static function writeKnown(\WC_Order $order, array $known): void
    {
        $order->update_meta_data(self::KNOWN_META, $known);
        $order->save();
    }
}
