<?php

declare(strict_types=1);

// $headers: names in lower case, array_change_key_case(getallheaders()); $body: file_get_contents('php://input');
// $secrets: 64 hex digits each, the one you use and, while you change it, the next. Both throw where the message is
// not from this gateway.

/** The message of a signed webhook. */
function readSigned(array $headers, string $body, array $secrets): array
{
    $sentAt = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($sentAt) || abs(time() - (int) $sentAt) > 300) {
        throw new RuntimeException('too old, or not signed');
    }
    $signed = ($headers['webhook-id'] ?? '') . ".$sentAt.$body";
    foreach ($secrets as $secret) {
        $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, hex2bin($secret), true));
        foreach (explode(' ', $headers['webhook-signature'] ?? '') as $signature) {
            if (hash_equals($expected, $signature)) {
                return json_decode($body, true, flags: JSON_THROW_ON_ERROR);
            }
        }
    }
    throw new RuntimeException('not signed with a secret of ours');
}

/** The message of an encrypted webhook, wrapped in JSON or not. */
function readEncrypted(array $headers, string $body, array $secrets): array
{
    $text = str_starts_with($body, '{') ? (json_decode($body, true)['encryptedBody'] ?? '') : $body;
    foreach ([$text, $headers['x-initialization-vector'] ?? '', $headers['x-authentication-tag'] ?? ''] as $part) {
        if (!is_string($part) || !ctype_xdigit($part) || strlen($part) % 2 !== 0) {
            throw new RuntimeException('body or headers are not hex');
        }
    }
    $iv = hex2bin($headers['x-initialization-vector']);
    $tag = hex2bin($headers['x-authentication-tag']);
    if (strlen($iv) !== 12 || strlen($tag) !== 16) {  // PHP would take a shorter tag.
        throw new RuntimeException('not encrypted with a secret of ours');
    }
    foreach ($secrets as $secret) {
        $plain = openssl_decrypt(hex2bin($text), 'aes-256-gcm', hex2bin($secret), OPENSSL_RAW_DATA, $iv, $tag);
        if ($plain !== false) {
            return json_decode($plain, true, flags: JSON_THROW_ON_ERROR);
        }
    }
    throw new RuntimeException('not encrypted with a secret of ours');
}
