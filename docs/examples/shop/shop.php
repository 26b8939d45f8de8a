<?php

// A shop with one product: php -S 127.0.0.1:9100 shop.php, then open http://127.0.0.1:9100. PHP 8.1 or newer.
declare(strict_types=1);

const BASE = 'https://gateway.example';
const TOKEN = 'your access token';
const ENTITY_ID = 'your entityId';
const PRICE = '18.00';
const CURRENCY = 'EUR';
const PAID = '/^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)/';
define('SHOP', "http://{$_SERVER['HTTP_HOST']}");
session_start(); // In a real shop: your database. The number of an order -> what became of it.

/** Calls the gateway. A declined payment or a fault is an answer, too: its result.code tells. */
function ask(string $method, string $path, array $fields = []): array
{
    $sent = http_build_query(['entityId' => ENTITY_ID, ...$fields]);
    $headers = ['Authorization: Bearer ' . TOKEN, 'Content-Type: application/x-www-form-urlencoded'];
    $options = ['method' => $method, 'header' => $headers, 'ignore_errors' => true, 'follow_location' => 0];
    $address = BASE . $path . ($method === 'POST' ? '' : "?$sent");
    $context = stream_context_create(['http' => $options + ($method === 'POST' ? ['content' => $sent] : [])]);
    return json_decode(file_get_contents($address, false, $context), true, flags: JSON_THROW_ON_ERROR);
}

function openCheckout(): string
{
    $order = 'order-' . bin2hex(random_bytes(6));
    $made = ask('POST', '/v1/checkouts', [
        'amount' => PRICE, 'currency' => CURRENCY, 'paymentType' => 'DB', 'integrity' => 'true',
        'merchantTransactionId' => $order, 'shopperResultUrl' => SHOP . '/result',
    ]);
    if (!isset($made['id'])) {
        return '<h1>Not possible now</h1><pre>' . htmlspecialchars(json_encode($made['result'], JSON_PRETTY_PRINT)) . '</pre>';
    }
    $_SESSION['orders'][$order] = 'open';
    $script = BASE . "/v1/paymentWidgets.js?checkoutId={$made['id']}";
    return "<script src=\"$script\" integrity=\"{$made['integrity']}\" crossorigin=\"anonymous\"></script>"
        . '<h1>' . PRICE . ' ' . CURRENCY . '</h1>'
        . '<form action="' . SHOP . '/result" class="paymentWidgets" data-brands="VISA MASTER"></form>';
}

function showResult(string $path): string
{
    // The address comes from the shopper: ask no other path.
    if (!preg_match('#^/v1/checkouts/[0-9A-F]{32}-[0-9A-Za-z]{1,15}/payment$#D', $path)) {
        return '<h1>No such order</h1>';
    }
    $found = ask('GET', $path);
    $order = $found['merchantTransactionId'] ?? '';
    $code = $found['result']['code'];
    $paid = preg_match(PAID, $code) && isset($_SESSION['orders'][$order])
        && $found['amount'] === PRICE && $found['currency'] === CURRENCY;
    if ($paid) {
        $_SESSION['orders'][$order] = 'paid'; // Ship it once: this page may be opened twice.
    }
    $words = $paid ? 'Thank you' : (str_starts_with($code, '000.200') ? 'We wait for your bank' : 'That did not work');
    return "<h1>$words</h1><p>" . htmlspecialchars($order) . " $code</p><a href=\"/\">Back to the shop</a>";
}

$body = match (true) {
    $_SERVER['REQUEST_METHOD'] === 'POST' => openCheckout(),
    strtok($_SERVER['REQUEST_URI'], '?') === '/result' => showResult($_GET['resourcePath'] ?? ''),
    $_SERVER['REQUEST_URI'] === '/' => '<h1>Harbour mug</h1><p>' . PRICE . ' ' . CURRENCY . '</p>'
        . '<form method="post" action="/checkout"><button>Go to payment</button></form>',
    default => '<h1>No such page</h1>',
};
echo "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Shop</title>$body</html>";
