<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Answer;

/**
 * What is known of a card.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read CardFacts $card
 * @property-read list<string>|null $ignoredParameters
 * @property-read Result $result
 * @property-read string $buildNumber
 * @property-read string $timestamp
 * @property-read string $ndc
 */
final class CardFactsAnswer extends Answer
{
    protected const TYPES = ['card' => CardFacts::class, 'result' => Result::class];
}
