<?php

declare(strict_types=1);

namespace Tollhouse\WooCommerce;

use Tollhouse\Http\Response;
use Tollhouse\Http\Transport;
use Tollhouse\Http\TransportException;

/** Sends requests by WordPress's own HTTP client. */
final class WordPressTransport implements Transport
{
    private const TIMEOUT_S = 20;

    public function send(
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
    ): Response {
        $answer = wp_remote_request($url, [
            'method' => $method,
            'headers' => $headers,
            'body' => $body,
            'timeout' => self::TIMEOUT_S,
            'redirection' => 0,
        ]);
        if (is_wp_error($answer)) {
            throw new TransportException($answer->get_error_message());
        }
        $found = [];
        foreach (wp_remote_retrieve_headers($answer) as $name => $value) {
            $found[$name] = is_array($value) ? implode(', ', $value) : (string) $value;
        }
        return new Response((int) wp_remote_retrieve_response_code($answer), $found, wp_remote_retrieve_body($answer));
    }
}
