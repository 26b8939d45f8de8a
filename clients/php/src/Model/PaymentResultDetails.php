<?php

declare(strict_types=1);

namespace Tollhouse\Model;

use Tollhouse\Model;

/**
 * The acquirer's own words; other names may stand here too, with texts.
 *
 * Generated from the OpenAPI document by `make clients`. Do not edit.
 *
 * @property-read string $AcquirerResponse
 * @property-read string $ExtendedDescription
 * @property-read string|null $MerchantAdviceCode
 * @property-read string|null $authorizationExpiresAt
 * @property-read string|null $authorizationExpired
 * @property-read string|null $archivedAt
 * @property-read string|null $NetworkToken
 * @property-read string|null $transferReturned
 * @property-read string|null $transferReturnReason
 */
final class PaymentResultDetails extends Model
{}
