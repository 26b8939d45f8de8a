<?php
/**
 * What the plug-in uses of WordPress and WooCommerce, written after their documentation: hooks, options, HTTP, orders.
 * Orders are files of JSON, so that requests share them; calls that a test looks for are in the order's `log`.
 */

declare(strict_types=1);

namespace {
    const ABSPATH = '/';
    define('FOLDER', getenv('SHOP_FOLDER'));
    define('SHOP_URL', getenv('SHOP_URL'));

    $hooks = [];

    function add_action(string $name, callable $callback): void { $GLOBALS['hooks'][$name][] = $callback; }
    function add_filter(string $name, callable $callback): void { add_action($name, $callback); }
    function do_action(string $name, mixed ...$arguments): void
    {
        foreach ($GLOBALS['hooks'][$name] ?? [] as $callback) {
            $callback(...$arguments);
        }
    }
    function apply_filters(string $name, mixed $value, mixed ...$more): mixed
    {
        foreach ($GLOBALS['hooks'][$name] ?? [] as $callback) {
            $value = $callback($value, ...$more);
        }
        return $value;
    }
    function __(string $text, string $domain): string { return $text; }
    function absint(mixed $value): int { return abs((int) $value); }
    function wp_unslash(mixed $value): mixed { return is_string($value) ? stripslashes($value) : $value; }
    function get_option(string $name, mixed $default = false): mixed
    {
        $file = FOLDER . '/settings.json';  // what was saved since the shop began
        $saved = is_file($file) ? file_get_contents($file) : getenv('SHOP_SETTINGS');
        return $name === 'woocommerce_tollhouse_settings' ? json_decode($saved, true) : $default;
    }
    function add_query_arg(array $arguments, string $url): string { return $url . '?' . http_build_query($arguments); }
    function wp_safe_redirect(string $location): void { header("Location: $location", true, 302); }
    function wp_send_json(mixed $body, int $status = 200): never
    {
        http_response_code($status);
        header('Content-Type: application/json');
        echo json_encode($body);
        exit;
    }
    function wp_die(string $message, string $title, array $arguments): never
    {
        http_response_code($arguments['response']);
        echo $message;
        exit;
    }

    // --- WordPress's HTTP client -----------------------------------------------------------------------------------------

    function wp_remote_request(string $url, array $arguments): array|WP_Error
    {
        $lines = [];
        foreach ($arguments['headers'] as $name => $value) {
            $lines[] = "$name: $value";
        }
        $context = stream_context_create(['http' => [
            'method' => $arguments['method'], 'header' => $lines, 'content' => $arguments['body'],
            'timeout' => $arguments['timeout'], 'follow_location' => 0, 'ignore_errors' => true,
        ]]);
        $body = @file_get_contents($url, false, $context);
        if ($body === false) {
            return new WP_Error('http_request_failed', 'Could not connect.');
        }
        $headers = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $headers[strtolower($name)] = trim($value);
        }
        return ['headers' => $headers, 'body' => $body, 'status' => (int) explode(' ', $http_response_header[0])[1]];
    }
    function wp_remote_retrieve_headers(array $answer): iterable { return $answer['headers']; }
    function wp_remote_retrieve_response_code(array $answer): int { return $answer['status']; }
    function wp_remote_retrieve_body(array $answer): string { return $answer['body']; }

    class WP_Error
    {
        public function __construct(public string $code = '', public string $message = '') {}
        public function get_error_message(): string { return $this->message; }
    }
    function is_wp_error(mixed $value): bool { return $value instanceof WP_Error; }

    /**
     * GET_LOCK and RELEASE_LOCK, by files. A request that has to wait leaves NAME.waits; it does not wait at all where there
     * is a file `impatient`.
     */
    $wpdb = new class {
        public string $prefix = 'wp_';
        private array $locks = [];
        public function prepare(string $query, mixed ...$values): array { return [$query, ...$values]; }
        public function get_var(array $call): string
        {
            [$query, $name, $seconds] = $call + [2 => 0];
            if (!str_contains($query, 'GET_LOCK')) {
                fclose($this->locks[$name]);
                return '1';
            }
            $until = microtime(true) + (is_file(FOLDER . '/impatient') ? 0 : $seconds);
            $this->locks[$name] = fopen(FOLDER . "/$name.lock", 'c');
            while (!flock($this->locks[$name], LOCK_EX | LOCK_NB)) {
                touch(FOLDER . "/$name.waits");
                if (microtime(true) >= $until) {
                    return '0';
                }
                usleep(20_000);
            }
            return '1';
        }
    };

    // --- WooCommerce -----------------------------------------------------------------------------------------------------

    abstract class WC_Settings_API
    {
        public string $id = '';
        public array $form_fields = [];
        public array $settings = [];
        public function init_settings(): void
        {
            $this->settings = get_option("woocommerce_{$this->id}_settings", []);
            foreach ($this->form_fields as $name => $field) {
                $this->settings[$name] ??= $field['default'];
            }
        }
        public function get_option(string $key, mixed $empty = null): mixed { return $this->settings[$key] ?? $empty; }
        public function process_admin_options(): void {}
    }

    abstract class WC_Payment_Gateway extends WC_Settings_API
    {
        public $enabled = 'yes';
        public $title;
        public $description;
        public $method_title = '';
        public $method_description = '';
        public $has_fields;
        public $supports = ['products'];
        public function init_settings(): void
        {
            parent::init_settings();
            $this->enabled = ($this->settings['enabled'] ?? '') === 'yes' ? 'yes' : 'no';
        }
        public function is_available() { return $this->enabled === 'yes'; }
        public function needs_setup() { return false; }
        public function get_return_url($order = null) { return SHOP_URL . "/thanks/{$order->get_id()}"; }
        public function process_payment($order_id) { return []; }
        public function process_refund($order_id, $amount = null, $reason = '') { return false; }
    }

    /** What a request has read of an order it keeps, as WordPress does, until its caches are cleared. */
    $kept = [];
    function clean_post_cache(int $id): void { unset($GLOBALS['kept'][$id]); }

    /** An order; an update of its status, its payment and its refunds are noted in `log`. */
    class WC_Order
    {
        public array $data;
        public function __construct(private int $id)
        {
            $this->data = $GLOBALS['kept'][$id] ??= json_decode(file_get_contents($this->file()), true);
        }
        private function file(): string { return FOLDER . "/order-$this->id.json"; }
        public function save(): void
        {
            $GLOBALS['kept'][$this->id] = $this->data;
            file_put_contents($this->file(), json_encode($this->data));
        }
        public function read_meta_data(bool $force = false): void {}
        public function get_id(): int { return $this->id; }
        public function get_order_number(): string { return (string) $this->id; }
        public function get_order_key(): string { return $this->data['key']; }
        public function get_total(): string { return $this->data['total']; }
        public function get_currency(): string { return $this->data['currency']; }
        public function get_payment_method(): string { return $this->data['method']; }
        public function get_transaction_id(): string { return $this->data['transaction'] ?? ''; }
        public function set_transaction_id(string $id): void { $this->data['transaction'] = $id; }
        public function get_total_refunded(): float { return array_sum($this->data['refunds'] ?? []); }
        public function get_meta(string $name): mixed { return $this->data['meta'][$name] ?? ''; }
        public function update_meta_data(string $name, mixed $value): void { $this->data['meta'][$name] = $value; }
        public function delete_meta_data(string $name): void { unset($this->data['meta'][$name]); }
        public function set_payment_method(WC_Payment_Gateway $gateway): void { $this->data['method'] = $gateway->id; }
        public function get_date_paid(): ?DateTime { return isset($this->data['paid']) ? new DateTime($this->data['paid']) : null; }
        public function has_status(string|array $wanted): bool { return in_array($this->data['status'], (array) $wanted, true); }
        public function is_paid(): bool { return $this->has_status(['processing', 'completed']); }
        public function add_order_note(string $note): void { $this->note("note: $note"); }
        public function get_checkout_payment_url(): string { return SHOP_URL . "/again/$this->id"; }
        public function update_status(string $status, string $note = ''): void
        {
            $this->data['status'] = $status;
            $this->note("$status: $note");
        }
        public function payment_complete(string $transaction): void
        {
            if (!$this->has_status(['on-hold', 'pending', 'failed', 'cancelled'])) {
                return;
            }
            $this->data['transaction'] = $transaction;
            $this->data['paid'] = date('c');
            $this->update_status('processing', 'paid');
        }
        public function note(string $text): void
        {
            $this->data['log'][] = $text;
            $this->save();
        }
        public function __call(string $name, array $arguments): string
        {
            return str_starts_with($name, 'get_billing_') ? (string) ($this->data[substr($name, 4)] ?? '') : throw new Error($name);
        }
    }

    /** Has an id like an order's, and nothing else of one. */
    class WC_Order_Refund {}

    function wc_get_order(mixed $id): WC_Order|WC_Order_Refund|false
    {
        if ($id && is_file(FOLDER . "/refund-$id")) {
            return new WC_Order_Refund();
        }
        return $id && is_file(FOLDER . "/order-$id.json") ? new WC_Order((int) $id) : false;
    }
    function wc_get_order_id_by_order_key(string $key): int
    {
        foreach (glob(FOLDER . '/order-*.json') as $file) {
            if (json_decode(file_get_contents($file), true)['key'] === $key) {
                return (int) substr(basename($file, '.json'), 6);
            }
        }
        return 0;
    }
    /** As WooCommerce does it: the refund is there before the gateway is asked, and is taken away if that fails. */
    function wc_create_refund(array $refund): bool|WP_Error
    {
        $order = wc_get_order($refund['order_id']);
        if ($order->get_total_refunded() + (float) $refund['amount'] > (float) $order->get_total()) {
            return new WP_Error('error', 'Invalid refund amount.');
        }
        $order->data['refunds'][] = (float) $refund['amount'];
        $order->note("refund of {$refund['amount']}");
        if ($refund['refund_payment'] && is_wp_error($done = (new Tollhouse\WooCommerce\Gateway())->process_refund(...array_values($refund)))) {
            $order = wc_get_order($refund['order_id']);
            array_pop($order->data['refunds']);
            $order->note("not refunded: {$done->get_error_message()}");
            return $done;
        }
        return true;
    }
    function wc_get_container(): object
    {
        return new class {
            public function get(string $class): object { return new $class(); }
        };
    }
    function wc_add_notice(string $text, string $kind): void { header('X-Notice: ' . $text); }
    function wc_get_logger(): object
    {
        return new class {
            public function error(string $message, array $context): void { error_log($message); }
        };
    }
    function WC(): object
    {
        return new class {
            public function api_request_url(string $name): string { return SHOP_URL . "/wc-api/$name/"; }
        };
    }
}

namespace Automattic\WooCommerce\Utilities {
    class FeaturesUtil
    {
        public static array $declared = [];
        public static function declare_compatibility(string $feature, string $file, bool $is): void { self::$declared[] = $feature; }
    }
}

namespace Automattic\WooCommerce\Blocks\Payments\Integrations {
    abstract class AbstractPaymentMethodType
    {
        protected $name = '';
        protected $settings = [];
    }
}

/** The caches of orders in tables of their own: nothing is kept in them here. */
namespace Automattic\WooCommerce\Caches {
    class OrderCache
    {
        public function remove(int $id): bool { return true; }
    }
}

namespace Automattic\WooCommerce\Internal\DataStores\Orders {
    class OrdersTableDataStore
    {
        public function clear_cached_data(array $ids): array { return array_fill_keys($ids, true); }
    }

    /** Of an older version. */
    class OrdersTableDataStoreMeta {}
}
