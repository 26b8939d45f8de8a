<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

use Tollhouse\Event;
use Tollhouse\Exception\ApiException;
use Tollhouse\Exception\TollhouseException;
use Tollhouse\Model;
use Tollhouse\Webhooks;

/** /wc-api/tollhouse/: the shopper's return (GET) and webhooks (POST). */
final class Endpoint
{
    public function __construct(private readonly Gateway $gateway)
    {
    }

    public function answer(): never
    {
        if (($_SERVER['REQUEST_METHOD'] ?? '') !== 'POST') {
            $this->leadShopper();
        }
        $event = $this->verify();
        if ($event === null) {
            wp_send_json(['error' => 'not verified'], 400);
        }
        try {
            // 200 for webhooks of other shops, too: they would come again for 30 days.
            if ($event->type === 'PAYMENT' && ($order = $this->findOrder($event)) !== null) {
                (new Results($this->gateway))->read($order);
            }
        } catch (TollhouseException | \InvalidArgumentException $fault) {
            wc_get_logger()->error($fault->getMessage(), ['source' => Gateway::ID]);
            wp_send_json(['error' => 'try again'], 503);
        }
        wp_send_json(['status' => 'ok'], 200);
        exit;
    }

    private function leadShopper(): never
    {
        $order = wc_get_order(absint($_GET['order'] ?? 0));
        $key = is_string($_GET['key'] ?? null) ? wp_unslash($_GET['key']) : '';
        // A refund has an id like an order's, and no key.
        if (!$order instanceof \WC_Order || $key === '' || !hash_equals($order->get_order_key(), $key)) {
            wp_die('Unknown order.', '', ['response' => 404]);
        }
        try {
            $good = (new Results($this->gateway))->read($order, returned: true);
        } catch (TollhouseException | \InvalidArgumentException $fault) {
            // It may be paid. A webhook will tell, and the shopper must not pay again.
            Gateway::log($order, $fault->getMessage());
            wp_safe_redirect($this->gateway->get_return_url($order));
            exit;
        }
        $order = wc_get_order($order->get_id());
        $good = $good || $order->is_paid();
        if (!$good) {
            wc_add_notice(__('The payment was not made. You can try it again.', 'tollhouse-woocommerce'), 'error');
        }
        wp_safe_redirect($good ? $this->gateway->get_return_url($order) : $order->get_checkout_payment_url());
        exit;
    }

    private function verify(): ?Event
    {
        $secret = $this->gateway->readOption('webhook_secret');
        try {
            $body = (string) file_get_contents('php://input');
            return $secret === '' ? null : Webhooks::verify($body, self::listHeaders(), [$secret]);
        } catch (TollhouseException | \InvalidArgumentException) {
            return null;
        }
    }

    /**
     * The order of a webhook: by its own reference, or by that of the payment which it follows. An order whose shopper has
     * chosen another way of paying meanwhile is one, too: the money is there.
     */
    private function findOrder(Event $event): ?\WC_Order
    {
        $references = [$event->payload['merchantTransactionId'] ?? ''];
        if (!empty($event->payload['referencedId'])) {
            $references = [...$references, ...$this->listReferences((string) $event->payload['id'])];
        }
        foreach (array_filter($references) as $reference) {
            $order = wc_get_order(wc_get_order_id_by_order_key($reference));
            if ($order instanceof \WC_Order) {
                return $order;
            }
        }
        return null;
    }

    /** @return list<string> of the chain of a record; none for one of another channel, which is no order of this shop */
    private function listReferences(string $id): array
    {
        try {
            $chain = $this->gateway->buildClient()->transactions->get($id, ['includeLinkedTransactions' => true]);
        } catch (ApiException $fault) {
            if (in_array($fault->status, [403, 404], true) || $fault->resultCode === Results::NOTHING_FOUND) {
                return [];
            }
            throw $fault;
        }
        return array_map(static fn (Model $one): string => $one->toArray()['merchantTransactionId'] ?? '', $chain->records);
    }

    /** @return array<string, string> also where the web server has no getallheaders() */
    private static function listHeaders(): array
    {
        $found = [];
        foreach ($_SERVER as $name => $value) {
            if (str_starts_with($name, 'HTTP_') && is_string($value)) {
                $found[strtolower(strtr(substr($name, 5), '_', '-'))] = wp_unslash($value);
            }
        }
        return $found;
    }
}
