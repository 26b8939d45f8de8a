<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * A subscription job.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $id
 * @property-read string $paymentType
 * @property-read string|null $paymentBrand
 * @property-read string $amount
 * @property-read string $currency
 * @property-read string $descriptor
 * @property-read string $registrationId
 * @property-read mixed $job
 * @property-read SchedulePlan $plan
 * @property-read list<ScheduleRuns>|null $runs
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class Schedule extends Answer
{
    protected const TYPES = ['plan' => SchedulePlan::class, 'runs' => ScheduleRuns::class, 'result' => Result::class];
}
