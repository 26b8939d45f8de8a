<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

use Tollhouse\Client;
use Tollhouse\Exception\ApiException;
use Tollhouse\Exception\NoAnswerException;
use Tollhouse\Exception\NotFoundException;
use Tollhouse\Exception\ParametersException;
use Tollhouse\Exception\TollhouseException;

/**
 * The payment method: leads to the hosted payment page, and refunds. What became of a payment is in Results.
 * Interface: WC_Payment_Gateway, https://developer.woocommerce.com/docs/features/payments/payment-gateway-api/.
 */
class Gateway extends \WC_Payment_Gateway
{
    public const ID = 'tollhouse';
    private const CHECKOUT_META = '_tollhouse_checkout';

    public function __construct()
    {
        $this->id = self::ID;
        $this->method_title = 'Tollhouse';
        $this->method_description = __('Shoppers pay on the payment page of your gateway.', 'tollhouse-woocommerce');
        $this->has_fields = false;
        $this->supports = ['products', 'refunds'];
        $this->form_fields = $this->describeSettings();
        $this->init_settings();
        $this->title = (string) $this->get_option('title');
        $this->description = (string) $this->get_option('description');
        add_action('woocommerce_update_options_payment_gateways_' . $this->id, [$this, 'process_admin_options']);
    }

    /** Not offered before the base address, a token and the entityId are there. */
    public function is_available(): bool
    {
        return parent::is_available() && !$this->needs_setup();
    }

    public function needs_setup(): bool
    {
        return in_array('', array_map($this->readOption(...), ['base_url', 'token', 'entity_id']), true);
    }

    public function readOption(string $name): string
    {
        return trim((string) $this->get_option($name));
    }

    /** @throws \InvalidArgumentException for settings with which there can be no client */
    public function buildClient(): Client
    {
        return new Client(
            $this->readOption('base_url'),
            token: $this->readOption('token'),
            entityId: $this->readOption('entity_id'),
            maxRetries: 1,
            transport: new WordPressTransport(),
        );
    }

    /** @return array{result: string, redirect?: string} */
    public function process_payment($order_id): array
    {
        $order = wc_get_order($order_id);
        try {
            // The shopper may have gone back, and pays again.
            $done = $order->is_paid() || ($order->get_meta(self::CHECKOUT_META) && (new Results($this))->read($order));
            $page = $done ? $this->get_return_url($order) : Results::lock($order, $this->openPage(...));
            return ['result' => 'success', 'redirect' => $page];
        } catch (TollhouseException | \InvalidArgumentException $fault) {
            self::log($order, $fault->getMessage());
            wc_add_notice(__('The payment page could not be opened. Please try again.', 'tollhouse-woocommerce'), 'error');
            return ['result' => 'failure'];
        }
    }

    /** @return bool|\WP_Error */
    public function process_refund($order_id, $amount = null, $reason = '')
    {
        $order = wc_get_order($order_id);
        try {
            $text = self::formatAmount($amount ?? $order->get_total());
            Results::lock($order, fn (\WC_Order $fresh) => (new Refunds($this))->send($fresh, $text));
            return true;
        } catch (NoAnswerException) {
            return new \WP_Error('tollhouse', __(
                'The gateway did not answer. A refund that was made is shown here once its webhook comes. Ask again: it is made once.',
                'tollhouse-woocommerce',
            ));
        } catch (TollhouseException | \InvalidArgumentException $fault) {
            return new \WP_Error('tollhouse', $fault->getMessage());
        }
    }

    /**
     * An amount with two decimals, as the gateway takes them in any currency. Nothing is rounded; the noise of a binary
     * fraction (0.1 + 0.2) is no decimal.
     *
     * @throws \InvalidArgumentException for an amount with more decimals, and for what is no amount
     */
    public static function formatAmount(mixed $amount): string
    {
        $text = is_float($amount) ? number_format($amount, 6, '.', '') : (string) $amount;
        if (preg_match('/^(\d+)(?:\.(\d{0,2})0*)?$/D', $text, $parts) !== 1) {
            throw new \InvalidArgumentException("the amount $text cannot be sent: the gateway takes two decimals");
        }
        return ltrim(substr($parts[1], 0, -1), '0') . substr($parts[1], -1) . '.' . str_pad($parts[2] ?? '', 2, '0');
    }

    /** Whether an update of a checkout was refused because it is being paid, or paid. Its page says so to the shopper. */
    public static function isBeingPaid(ApiException $fault): bool
    {
        $paid = $fault->resultCode === '200.300.404' && str_contains($fault->description, 'is paid already');
        return $fault->status === 400 && ($paid || $fault->resultCode === '800.120.402');
    }

    /** A line for the shop's staff, in WooCommerce's log. */
    public static function log(\WC_Order $order, string $message): void
    {
        wc_get_logger()->error("order {$order->get_id()}: $message", ['source' => self::ID]);
    }

    /** The address of the payment page. An order has one open checkout at a time: two might both be paid. */
    private function openPage(\WC_Order $order): string
    {
        $client = $this->buildClient();
        $money = ['amount' => self::formatAmount($order->get_total()), 'currency' => $order->get_currency()];
        $known = $order->get_meta(self::CHECKOUT_META);
        if (is_array($known)) {
            try {
                $client->checkouts->update($known['id'], $money);
                return $known['page'];
            } catch (NotFoundException) {
                // It has expired.
            } catch (ApiException $fault) {
                // Any other refusal leaves the old amount on the page.
                return self::isBeingPaid($fault) ? $known['page'] : throw $fault;
            }
        }
        $made = $this->createCheckout($client, $money + [
            'paymentType' => 'DB',
            'paymentPage' => true,
            'merchantTransactionId' => $order->get_order_key(),
            'merchantInvoiceId' => 'order-' . str_pad($order->get_order_number(), 4, '0', STR_PAD_LEFT),
            'shopperResultUrl' => add_query_arg(
                ['order' => $order->get_id(), 'key' => $order->get_order_key()],
                WC()->api_request_url(self::ID),
            ),
        ], Shopper::describe($order));
        $order->update_meta_data(self::CHECKOUT_META, ['id' => $made->id, 'page' => $made->paymentPage]);
        $order->save();
        return $made->paymentPage;
    }

    /** Without the shopper's name and address where the gateway refuses them: they only help risk checks. */
    private function createCheckout(Client $client, array $checkout, array $shopper): \Tollhouse\Model\Checkout
    {
        try {
            return $client->checkouts->create($checkout + $shopper);
        } catch (ParametersException $fault) {
            foreach ($fault->errors as $one) {
                if (!isset($shopper[explode('.', $one['name'])[0]])) {
                    throw $fault;
                }
            }
            return $client->checkouts->create($checkout);
        }
    }

    /** @return array<string, array<string, mixed>> */
    private function describeSettings(): array
    {
        $text = static fn (string $title, string $more = '', string $type = 'text', string $default = ''): array => [
            'title' => $title, 'type' => $type, 'description' => $more, 'default' => $default,
        ];
        $hook = WC()->api_request_url(self::ID);
        return [
            'enabled' => ['label' => __('Offer it to shoppers', 'tollhouse-woocommerce')]
                + $text(__('Enabled', 'tollhouse-woocommerce'), '', 'checkbox', 'no'),
            'title' => $text(__('Title', 'tollhouse-woocommerce'), '', 'text', __('Card and other means', 'tollhouse-woocommerce')),
            'description' => $text(__('Description', 'tollhouse-woocommerce'), '', 'textarea'),
            'base_url' => $text(__('Base address', 'tollhouse-woocommerce'), 'https://gateway.example'),
            'token' => $text(__('Access token', 'tollhouse-woocommerce'), '', 'password'),
            'entity_id' => $text('entityId', __('Of the channel.', 'tollhouse-woocommerce')),
            'webhook_secret' => $text(
                __('Webhook secret', 'tollhouse-woocommerce'),
                sprintf(__('Optional. Make an endpoint with the address %s', 'tollhouse-woocommerce'), $hook),
                'password',
            ),
        ];
    }
}
