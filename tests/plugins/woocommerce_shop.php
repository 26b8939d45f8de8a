<?php
/** A shop with the plug-in, for PHP's own web server. */

declare(strict_types=1);

require __DIR__ . '/woocommerce_stubs.php';
require getenv('SHOP_PLUGIN') . '/tollhouse-woocommerce.php';

do_action('before_woocommerce_init');
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
[, $what, $id, $action] = explode('/', $path) + [1 => '', 2 => '', 3 => ''];
$body = json_decode(file_get_contents('php://input'), true);
$gateways = array_map(static fn (string $class) => new $class(), apply_filters('woocommerce_payment_gateways', []));
if ($what === 'wc-api') {
    do_action("woocommerce_api_$id");
} elseif ($what === 'orders' && $id === '') {
    $number = count(glob(FOLDER . '/order-*.json')) + 1;
    $order = ['status' => 'pending', 'key' => 'wc_order_' . bin2hex(random_bytes(7)), 'method' => 'tollhouse'] + $body;
    file_put_contents(FOLDER . "/order-$number.json", json_encode($order));
    wp_send_json(['id' => $number]);
} elseif ($what === 'orders' && $action === 'pay') {
    wp_send_json($gateways[0]->process_payment((int) $id));
} elseif ($what === 'orders' && $action === 'refund') {
    $done = wc_create_refund(['order_id' => (int) $id, 'amount' => $body['amount'], 'reason' => '', 'refund_payment' => true]);
    wp_send_json(['error' => is_wp_error($done) ? $done->get_error_message() : null]);
} elseif ($what === 'orders') {
    wp_send_json(wc_get_order($id)->data);
} elseif ($what === 'gateway') {
    wp_send_json([
        'available' => $gateways[0]->is_available(),
        'settings' => array_keys($gateways[0]->form_fields),
        'compatible' => Automattic\WooCommerce\Utilities\FeaturesUtil::$declared,
        'blocks' => (new Tollhouse\WooCommerce\BlockSupport(__FILE__))->get_payment_method_data(),
    ]);
}
