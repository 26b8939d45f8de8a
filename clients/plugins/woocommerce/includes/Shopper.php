<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

/** The shopper's name and address, as a checkout takes them. */
final class Shopper
{
    /** @return array<string, array<string, string>> customer and billing; what the order does not have is left out */
    public static function describe(\WC_Order $order): array
    {
        $customer = array_filter([
            'givenName' => $order->get_billing_first_name(),
            'surname' => $order->get_billing_last_name(),
            'email' => $order->get_billing_email(),
        ]);
        $billing = array_filter([
            'street1' => $order->get_billing_address_1(),
            'street2' => $order->get_billing_address_2(),
            'city' => $order->get_billing_city(),
            'state' => $order->get_billing_state(),
            'postcode' => $order->get_billing_postcode(),
            'country' => $order->get_billing_country(),
        ]);
        // The gateway wants a name with any other parameter of a customer.
        $named = isset($customer['givenName'], $customer['surname']);
        return ($named ? ['customer' => $customer] : []) + ($billing === [] ? [] : ['billing' => $billing]);
    }
}
