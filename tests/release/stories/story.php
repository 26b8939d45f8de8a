<?php

// What a merchant's server does, with the installed PHP package; prints what became of it as JSON.

declare(strict_types=1);

use Tollhouse\Client;
use Tollhouse\Exception\AuthenticationException;
use Tollhouse\Exception\NoAnswerException;
use Tollhouse\Exception\NotFoundException;
use Tollhouse\Exception\ParametersException;
use Tollhouse\Exception\WebhookVerificationException;
use Tollhouse\Webhooks;

[, $guzzle, $url, $token, $entity, $messages] = $argv;
require $guzzle;
$package = getcwd() . '/vendor/tollhouse/client';
$roots = json_decode(file_get_contents("$package/composer.json"), true)['autoload']['psr-4'];
spl_autoload_register(static function (string $class) use ($package, $roots): void {
    foreach ($roots as $prefix => $folder) {
        if (str_starts_with($class, $prefix)) {
            require "$package/$folder" . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        }
    }
});

$gateway = new Client($url, token: $token, entityId: $entity);
$order = ['amount' => '92.00', 'currency' => 'EUR', 'paymentBrand' => 'VISA', 'paymentType' => 'PA',
    'merchantTransactionId' => 'order-4711', 'customParameters' => ['order.kind' => 'gift'],
    'cart' => ['items' => [['name' => 'Pen']]]];
$card = ['number' => '4200000000000000', 'holder' => 'Jane Jones', 'expiryMonth' => '05', 'expiryYear' => '2034'];
$told = [];
$paid = $gateway->payments->create($order + ['card' => $card], 'php-1');
$again = $gateway->payments->create($order + ['card' => $card], 'php-1');
$told['paid'] = [$paid->outcome(), $again->replayed() && $paid->id === $again->id,
    $paid->toArray()['customParameters']['order.kind'], $paid->toArray()['cart']['items'][0]['name']];
$capture = $gateway->payments->capture($paid->id, '50.00', 'EUR');
$told['capture'] = $capture->outcome();
$told['refund'] = $gateway->payments->refund($capture->id, '10.00', 'EUR')->outcome();
$told['reverse'] = $gateway->payments->reverse($paid->id)->outcome();
$linked = $gateway->transactions->get($paid->id, ['includeLinkedTransactions' => true]);
$told['found'] = array_map(static fn ($one) => $one->paymentType, $linked->records);
sort($told['found']);
$date = ['from' => '2026-05-14', 'to' => '2026-05-15'];
$told['settlements'] = count(iterator_to_array($gateway->reports->settlements(['date' => $date, 'testMode' => 'INTERNAL']), false));
$told['read'] = $gateway->payments->get($paid->id)->amount;
$told['declined'] = $gateway->payments->create($order + ['card' => ['number' => '4000015500000005'] + $card])->outcome();
try {
    $gateway->payments->create(['amount' => 'ninety'] + $order + ['card' => $card]);
} catch (ParametersException $fault) {
    $told['refused'] = [$fault->status, array_column($fault->errors, 'name'), $fault->ndc !== ''];
    $told['hidden'] = !str_contains($fault . print_r($paid, true) . print_r($gateway, true), $card['number']);
}
try {
    (new Client($url, token: 'wrong', entityId: $entity))->payments->get($paid->id);
} catch (AuthenticationException $fault) {
    $told['stranger'] = $fault->status;
}
try {
    $gateway->payments->get(str_repeat('0', 32));
} catch (NotFoundException $fault) {
    $told['missing'] = $fault->status;
}
try {
    $gateway->payments->create(['amount' => 9.99] + $order + ['card' => $card]);
} catch (TypeError) {
    $told['fraction'] = true;
}
try {
    $gateway->registrations->pay('..', $order);
} catch (InvalidArgumentException) {
    $told['dots'] = true;
}
try {
    (new Client('http://127.0.0.1:9', token: $token, maxRetries: 0))->payments->reverse($paid->id, 'k');
} catch (NoAnswerException $fault) {
    $told['away'] = $fault->idempotencyKey === 'k';
}
$forged = 0;
foreach (json_decode(file_get_contents($messages), true) as $mode => $one) {
    $event = Webhooks::verify($one['body'], $one['headers'], [str_repeat('00', 32), $one['secret']]);
    $told[$mode] = [$event->type, $event->payment()->amount === '7.00'];
    foreach ([[strtr($one['body'], '7', '8'), $one['secret']], [$one['body'], str_repeat('00', 32)]] as [$body, $secret]) {
        try {
            Webhooks::verify($body, $one['headers'], $secret);
        } catch (WebhookVerificationException) {
            ++$forged;
        }
    }
}
$told['forged'] = $forged === 4;
echo json_encode($told);
