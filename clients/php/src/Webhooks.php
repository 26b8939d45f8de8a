<?php

declare(strict_types=1);

namespace Tollhouse;

use Tollhouse\Exception\WebhookVerificationException;

/** Webhooks: verify one, and read it. Both modes: signed (Standard Webhooks) and encrypted (AES-256-GCM). */
final class Webhooks
{
    /** A signed webhook that is older may be sent again by a stranger. */
    public const MAX_AGE_S = 300;

    /**
     * The event, if it was made with one of your secrets.
     *
     * @param string $body the raw body: file_get_contents('php://input')
     * @param array<string, string|list<string>> $headers getallheaders(), or those of a PSR-7 request
     * @param string|list<string> $secrets 64 hex digits or whsec_…; while you change it, both
     *
     * @throws WebhookVerificationException
     */
    public static function verify(string $body, array $headers, #[\SensitiveParameter] string|array $secrets): Event
    {
        $keys = array_map(self::parseSecret(...), (array) $secrets);
        $lower = [];
        foreach ($headers as $name => $value) {
            $lower[strtolower((string) $name)] = is_array($value) ? implode(',', $value) : (string) $value;
        }
        $text = isset($lower['x-initialization-vector'])
            ? self::decrypt($body, $lower, $keys)
            : self::check($body, $lower, $keys);
        $found = json_decode($text, true);
        if (!is_array($found) || !is_string($found['type'] ?? null) || !is_string($found['action'] ?? null)) {
            throw new WebhookVerificationException('this is no event of a gateway');
        }
        return new Event($found['type'], $found['action'], $found['payload'] ?? []);
    }

    private static function parseSecret(#[\SensitiveParameter] string $text): string
    {
        $key = str_starts_with($text, 'whsec_')
            ? base64_decode(substr($text, 6), true)
            : (strlen($text) === 64 && ctype_xdigit($text) ? hex2bin($text) : '');
        if ($key === false || strlen($key) !== 32) {
            throw new \InvalidArgumentException('a webhook secret is 64 hex digits, or whsec_ and 32 bytes in base64');
        }
        return $key;
    }

    /**
     * @param array<string, string> $headers
     * @param list<string> $keys
     */
    private static function check(string $body, array $headers, #[\SensitiveParameter] array $keys): string
    {
        $sentAt = $headers['webhook-timestamp'] ?? '';
        if (!ctype_digit($sentAt)) {
            throw new WebhookVerificationException(
                'it has neither the headers of a signed nor those of an encrypted webhook',
            );
        }
        if (abs(time() - (int) $sentAt) > self::MAX_AGE_S) {
            throw new WebhookVerificationException('it is too old, or your clock is wrong');
        }
        $signed = ($headers['webhook-id'] ?? '') . ".$sentAt.$body";
        foreach ($keys as $key) {
            $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
            foreach (explode(' ', $headers['webhook-signature'] ?? '') as $sent) {
                if (hash_equals($expected, $sent)) {
                    return $body;
                }
            }
        }
        throw new WebhookVerificationException('it is not signed with one of your secrets');
    }

    /**
     * @param array<string, string> $headers
     * @param list<string> $keys
     */
    private static function decrypt(string $body, array $headers, #[\SensitiveParameter] array $keys): string
    {
        $hex = str_starts_with($body, '{') ? (json_decode($body, true)['encryptedBody'] ?? '') : $body;
        $parts = [$hex, $headers['x-initialization-vector'], $headers['x-authentication-tag'] ?? ''];
        [$sealed, $iv, $tag] = array_map(
            static fn (mixed $one) => is_string($one) && ctype_xdigit($one) && strlen($one) % 2 === 0 ? hex2bin($one) : '',
            $parts,
        );
        if ($sealed === '' || strlen($iv) !== 12 || strlen($tag) !== 16) {
            throw new WebhookVerificationException('its body or headers are not hex');
        }
        foreach ($keys as $key) {
            $text = openssl_decrypt($sealed, 'aes-256-gcm', $key, OPENSSL_RAW_DATA, $iv, $tag);
            if ($text !== false) {
                return $text;
            }
        }
        throw new WebhookVerificationException('it is not encrypted with one of your secrets');
    }
}
