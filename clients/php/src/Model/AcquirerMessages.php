<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * What was said to the acquirer, masked.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read list<AcquirerMessagesMessages> $messages
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class AcquirerMessages extends Answer
{
    protected const TYPES = ['messages' => AcquirerMessagesMessages::class, 'result' => Result::class];
}
