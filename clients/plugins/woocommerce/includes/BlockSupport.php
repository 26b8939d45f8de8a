<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

use Automattic\WooCommerce\Blocks\Payments\Integrations\AbstractPaymentMethodType;

/** The payment method in the checkout made of blocks. */
final class BlockSupport extends AbstractPaymentMethodType
{
    protected $name = Gateway::ID;

    public function __construct(private readonly string $file)
    {
    }

    public function initialize(): void
    {
        $this->settings = get_option('woocommerce_tollhouse_settings', []);
    }

    public function is_active(): bool
    {
        return (new Gateway())->is_available();
    }

    /** @return list<string> */
    public function get_payment_method_script_handles(): array
    {
        $needs = ['wc-blocks-registry', 'wc-settings', 'wp-element', 'wp-html-entities'];
        wp_register_script('tollhouse-blocks', plugins_url('assets/blocks.js', $this->file), $needs, '0.1.0', true);
        return ['tollhouse-blocks'];
    }

    /** @return array<string, mixed> */
    public function get_payment_method_data(): array
    {
        $gateway = new Gateway();
        return ['title' => $gateway->title, 'description' => $gateway->description, 'supports' => $gateway->supports];
    }
}
