<?php
/**
 * Plugin Name: Tollhouse for WooCommerce
 * Description: Shoppers pay on the hosted payment page of a Tollhouse payment gateway.
 * Version: 0.1.0
 * Requires PHP: 8.1
 * Requires Plugins: woocommerce
 * License: Apache-2.0
 * Text Domain: tollhouse-woocommerce
 */

declare(strict_types=1);

defined('ABSPATH') || exit;

// The client package is in the plug-in's zip; in a checkout of the sources it is two folders further up.
spl_autoload_register(static function (string $class): void {
    if (!str_starts_with($class, 'Tollhouse\\')) {
        return;
    }
    $file = str_replace('\\', '/', substr($class, 10)) . '.php';
    foreach ([__DIR__ . '/includes/', __DIR__ . '/client/', __DIR__ . '/../../php/src/'] as $folder) {
        $path = $folder . (str_starts_with($file, 'WooCommerce/') ? substr($file, 12) : $file);
        if (is_file($path)) {
            require_once $path;
            return;
        }
    }
});

add_action('before_woocommerce_init', static function (): void {
    if (class_exists(Automattic\WooCommerce\Utilities\FeaturesUtil::class)) {
        foreach (['custom_order_tables', 'cart_checkout_blocks'] as $feature) {
            Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility($feature, __FILE__, true);
        }
    }
});

add_filter('woocommerce_payment_gateways', static function (array $gateways): array {
    $gateways[] = Tollhouse\WooCommerce\Gateway::class;
    return $gateways;
});

// The address of the shopper's return and of webhooks: /wc-api/tollhouse/.
add_action('woocommerce_api_tollhouse', static function (): void {
    (new Tollhouse\WooCommerce\Endpoint(new Tollhouse\WooCommerce\Gateway()))->answer();
});

add_action('woocommerce_blocks_payment_method_type_registration', static function ($registry): void {
    $registry->register(new Tollhouse\WooCommerce\BlockSupport(__FILE__));
});
