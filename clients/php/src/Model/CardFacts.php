<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * What the table of BINs knows of the cards that begin so. A fact that is missing is not known.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $bin
 * @property-read list<string> $brands
 * @property-read mixed $issuer
 * @property-read string|null $issuerCountry
 * @property-read string|null $type
 * @property-read string|null $level
 * @property-read string|null $regulatedFlag
 */
final class CardFacts extends Model
{}
