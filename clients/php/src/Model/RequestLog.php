<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * The newest requests.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read list<RequestLogRequests> $requests
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class RequestLog extends Answer
{
    protected const TYPES = ['requests' => RequestLogRequests::class, 'result' => Result::class];
}
