<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * Webhooks that the inspector has kept.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<KeptWebhooksWebhooks> $webhooks
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class KeptWebhooks extends Answer
{
    protected const TYPES = ['webhooks' => KeptWebhooksWebhooks::class, 'result' => Result::class];
}
