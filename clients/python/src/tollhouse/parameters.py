"""What requests take: nested, under the names of the API. Generated from the OpenAPI document by `make clients`. Do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal, Required, TypedDict

Amount = Decimal | str
"""A sum of money: Decimal("92.00") or "92.00". A float is refused."""


class ForexParameters(TypedDict, total=False):
    amount: Amount
    currency: str


class CardParameters(TypedDict, total=False):
    holder: str
    number: str
    expiryMonth: str
    expiryYear: str
    cvv: str
    numberType: Literal["PAN", "DPAN"]


class Wallet1Parameters(TypedDict, total=False):
    paymentToken: str
    cardNetwork: str
    cardType: str
    source: Literal["web", "app"]


class Wallet2Parameters(TypedDict, total=False):
    paymentToken: str
    source: Literal["web", "app"]


class Wallet3Parameters(TypedDict, total=False):
    paymentToken: str
    source: Literal["web", "app"]


class VirtualAccountParameters(TypedDict, total=False):
    accountId: str


class MandateParameters(TypedDict, total=False):
    id: str
    dateOfSignature: str


class BankAccountParameters(TypedDict, total=False):
    holder: str
    bankName: str
    number: str
    iban: str
    bankCode: str
    bic: str
    country: str
    mandate: MandateParameters


class TokenAccountParameters(TypedDict, total=False):
    number: str
    type: Literal["EXTERNAL", "NETWORK"]
    expiryMonth: str
    expiryYear: str
    cryptogram: str
    dtvc: str


class BrowserFingerprintParameters(TypedDict, total=False):
    id: str
    value: str


class BrowserParameters(TypedDict, total=False):
    acceptHeader: str
    language: str
    screenHeight: str | int
    screenWidth: str | int
    timezone: str
    userAgent: str
    javaEnabled: bool
    screenColorDepth: str | int
    challengeWindow: str
    deviceId: str


class AppParameters(TypedDict, total=False):
    deviceId: str


class CustomerParameters(TypedDict, total=False):
    merchantCustomerId: str
    givenName: str
    middleName: str
    surname: str
    sex: Literal["M", "F"]
    birthDate: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    companyName: str
    identificationDocType: Literal["IDCARD", "PASSPORT", "TAXSTATEMENT"]
    identificationDocId: str
    ip: str
    merchantReference: str
    salutation: Literal["MR", "MRS", "MS", "MX"]
    language: str
    category: Literal["INDIVIDUAL", "COMPANY"]
    browserFingerprint: BrowserFingerprintParameters
    browser: BrowserParameters
    app: AppParameters
    status: Literal["NEW", "EXISTING"]


class CustomerBrowserParameters(TypedDict, total=False):
    acceptHeader: str
    language: str
    screenHeight: str | int
    screenWidth: str | int
    timezone: str
    userAgent: str
    javaEnabled: bool
    screenColorDepth: str | int
    challengeWindow: str


class ShippingCustomerParameters(TypedDict, total=False):
    merchantCustomerId: str
    givenName: str
    middleName: str
    surname: str
    sex: Literal["M", "F"]
    birthDate: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    companyName: str
    identificationDocType: Literal["IDCARD", "PASSPORT", "TAXSTATEMENT"]
    identificationDocId: str
    ip: str
    merchantReference: str
    salutation: Literal["MR", "MRS", "MS", "MX"]
    language: str
    category: Literal["INDIVIDUAL", "COMPANY"]
    browser: CustomerBrowserParameters
    status: Literal["NEW", "EXISTING"]


class ShippingParameters(TypedDict, total=False):
    customer: ShippingCustomerParameters
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    method: Literal["CARRIER_DESIGNATED_BY_CUSTOMER", "ELECTRONIC_DELIVERY", "EXPEDITED", "GROUND", "INTERNATIONAL", "LOWEST_COST", "MILITARY", "NEXT_DAY_OVERNIGHT", "OTHER", "POINT_PICKUP", "PUDO", "SAME_DAY_SERVICE", "STORE_PICKUP", "THREE_DAY_SERVICE", "TWO_DAY_SERVICE"]
    cost: Amount
    comment: str
    expectedDate: str
    logisticsProvider: str
    trackingNumber: str
    returnTrackingNumber: str
    normalized: str
    validationStatus: str
    warehouse: str
    preference: Literal["GET_FROM_FILE", "NO_SHIPPING", "SET_PROVIDED_ADDRESS"]
    middleName: str
    companyName: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    type: Literal["RETURN", "SHIPMENT"]


class BillingParameters(TypedDict, total=False):
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    normalized: str
    validationStatus: str


class MerchantBillingParameters(TypedDict, total=False):
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    normalized: str
    validationStatus: str
    givenName: str
    surname: str
    middleName: str
    companyName: str
    phone: str
    workPhone: str
    mobile: str
    email: str


class MerchantShippingParameters(TypedDict, total=False):
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    method: Literal["CARRIER_DESIGNATED_BY_CUSTOMER", "ELECTRONIC_DELIVERY", "EXPEDITED", "GROUND", "INTERNATIONAL", "LOWEST_COST", "MILITARY", "NEXT_DAY_OVERNIGHT", "OTHER", "POINT_PICKUP", "PUDO", "SAME_DAY_SERVICE", "STORE_PICKUP", "THREE_DAY_SERVICE", "TWO_DAY_SERVICE"]
    cost: Amount
    comment: str
    expectedDate: str
    logisticsProvider: str
    trackingNumber: str
    returnTrackingNumber: str
    normalized: str
    validationStatus: str
    warehouse: str
    preference: Literal["GET_FROM_FILE", "NO_SHIPPING", "SET_PROVIDED_ADDRESS"]
    middleName: str
    companyName: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    type: Literal["RETURN", "SHIPMENT"]


class MerchantAppParameters(TypedDict, total=False):
    schemeUrl: str


class MerchantParameters(TypedDict, total=False):
    billing: MerchantBillingParameters
    shipping: MerchantShippingParameters
    name: str
    mcc: str
    street: str
    city: str
    state: str
    countryCode: str
    country: str
    postcode: str
    geographicCoordinates: str
    serviceLocationCity: str
    serviceLocationState: str
    serviceLocationCountryCode: str
    serviceLocationPostCode: str
    serviceLocationGeographicCoordinates: str
    additionalContact: str
    phone: str
    customerContactPhone: str
    websiteId: str
    url: str
    partnerIdCode: str
    isoId: str
    payFacId: str
    payFacName: str
    submerchantId: str
    marketplaceId: str
    taxId: str
    data: Mapping[str, str]
    foreignRetailIndicator: str
    legalName: str
    app: MerchantAppParameters


class CorporateParameters(TypedDict, total=False):
    name: str
    description: str
    street: str
    address: str
    city: str
    state: str
    postCode: str
    suite: str
    postboxNumber: str
    purchase: Literal["Y", "N"]
    phone: str | int
    fax: str | int
    vatId: str


class SenderParameters(TypedDict, total=False):
    name: str
    givenName: str
    middleName: str
    surname: str
    birthDate: str
    accountNumber: str
    street: str
    city: str
    state: str
    country: str
    postcode: str
    accountNumberType: Literal["OTHER", "RTN_AND_BANK_ACCOUNT", "IBAN", "IBAN_AND_BIC", "CARD_ACCOUNT"]
    sourceOfFunds: Literal["01", "02", "03", "04", "05", "06", "07", "08", "09"]
    entityType: str
    nationality: str
    occupation: str
    birthCountry: str


class RecipientParameters(TypedDict, total=False):
    givenName: str
    middleName: str
    surname: str
    birthDate: str
    phone: str
    accountNumber: str
    street: str
    city: str
    state: str
    country: str
    postcode: str
    accountNumberType: Literal["OTHER", "RTN_AND_BANK_ACCOUNT", "IBAN", "PHONE_NUMBER", "BAN_AND_BIC", "WALLET_ID", "SOCIAL_NETWORK_ID", "IBAN_AND_BIC"]
    nationality: str
    identificationType: str
    identificationValue: str
    entityType: str
    relationship: str
    occupation: str
    birthCountry: str


class ItemsRecipientParameters(TypedDict, total=False):
    salutation: str
    firstName: str
    lastName: str
    middleName: str
    apartment: str
    street: str
    address: str
    city: str
    state: str
    postcode: str
    country: str
    phone: str | int
    email: str


class ItemsParameters(TypedDict, total=False):
    name: str
    merchantItemId: str
    quantity: str
    type: Literal["PHYSICAL", "DIGITAL", "MIXED", "ANONYMOUS_DONATION", "AUTHORITIES_PAYMENT"]
    sku: str
    currency: str
    description: str
    commodityCode: str | int
    commodityDescription: str
    originalPrice: str
    price: Amount
    totalAmount: Amount
    taxAmount: Amount
    totalTaxAmount: Amount
    tax: str
    taxCategory: Literal["AA", "S", "E", "Z"]
    shipping: Amount
    discount: Amount
    giftMessage: str
    shippingMethod: str
    shippingInstructions: str
    shippingTrackingNumber: str
    quantityUnit: Literal["M", "CM", "KG", "G", "COUNT"]
    productUrl: str
    imageUrl: str
    totalDiscountAmount: Amount
    productCode: str
    partNumber: str
    itemNumber: str | int
    vatReferenceNumber: str
    sellerId: str
    recipient: ItemsRecipientParameters
    deliveryDate: str


class PaymentsParameters(TypedDict, total=False):
    name: str
    type: Literal["GIFTCARD", "PROMOTION"]
    amount: Amount
    currency: str
    status: Literal["pending", "authorized", "captured"]
    brand: str
    primary: bool


class CartParameters(TypedDict, total=False):
    items: Sequence[ItemsParameters]
    payments: Sequence[PaymentsParameters]


class SellersParameters(TypedDict, total=False):
    id: str
    amount: Amount


class MarketPlaceParameters(TypedDict, total=False):
    sellers: Sequence[SellersParameters]


class LegsParameters(TypedDict, total=False):
    taxAmount: Amount
    feesAmount: Amount
    fareAmount: Amount
    departureTaxAmount: Amount
    departureDate: str
    arrivalDate: str
    ticketNumber: str
    stopOverAllowed: str
    restrictions: str
    flightNumber: str
    fareBasis: str
    exchangeTicketNum: str
    departureCountry: str
    departureAirport: str
    airlineName: str
    airlineCode: str
    departureTime: str
    arrivalCountry: str
    arrivalAirport: str
    arrivalTime: str
    couponNumber: str
    classOfService: str
    carrierCode: str
    timeToDeparture: str


class PassengersParameters(TypedDict, total=False):
    type: str
    name: str
    ticketRestricted: str
    ticketNumber: str
    status: str
    phone: str
    frequentFlyerNumber: str
    email: str
    dob: str
    checkDigit: str
    residenceCountry: str
    legs: Sequence[LegsParameters]


class AirlineParameters(TypedDict, total=False):
    totalTaxAmount: Amount
    totalFeesAmount: Amount
    totalFareAmount: Amount
    ticketIssueDate: str
    ticketIssueAddress: str
    thirdPartyBooking: str
    bookingtype: str
    ticketDeliveryMethod: str
    bookingRefNum: str
    agentName: str
    agentCode: str
    passengers: Sequence[PassengersParameters]


class RecurringMigrationParameters(TypedDict, total=False):
    paymentType: Literal["DB", "CD", "PA"]
    amount: Amount
    requestTimestamp: str
    connectorTxId1: str
    connectorTxId2: str
    connectorTxId3: str


class ThreeDSecureMerchantParameters(TypedDict, total=False):
    name: str
    url: str
    country: str


class VisaParameters(TypedDict, total=False):
    requestorId: str
    requestorName: str


class MastercardParameters(TypedDict, total=False):
    requestorId: str
    requestorName: str


class AmexParameters(TypedDict, total=False):
    requestorId: str
    requestorName: str


class DinersParameters(TypedDict, total=False):
    requestorId: str
    requestorName: str


class JcbParameters(TypedDict, total=False):
    requestorId: str
    requestorName: str


class CbParameters(TypedDict, total=False):
    requestorId: str
    requestorName: str


class V2Parameters(TypedDict, total=False):
    visa: VisaParameters
    mastercard: MastercardParameters
    amex: AmexParameters
    diners: DinersParameters
    jcb: JcbParameters
    cb: CbParameters


class ThreeDSecureParameters(TypedDict, total=False):
    amount: Amount
    currency: str
    deviceInfo: str
    merchant: ThreeDSecureMerchantParameters
    v2: V2Parameters
    channel: str
    npa: bool
    decoupled: bool
    threeRIInd: Literal["RECURRING", "SPLIT_SHIPMENT", "DELAYED_SHIPMENT"]
    authenticationInd: Literal["PAYMENT", "RECURRING", "INSTALLMENT", "ADD_CARD", "MAINTAIN_CARD", "EMV_ID", "BILLING_AGREEMENT", "SPLIT_SHIPMENT", "_DELAYED_SHIPMENT", "SPLIT_PAYMENT"]
    disable: bool
    eci: str
    verificationId: str
    authenticationStatus: Literal["Y", "A", "U", "N", "I"]
    dsTransactionId: str
    acsTransactionId: str
    challengeMandatedIndicator: Literal["Y", "N"]
    version: str
    authType: str
    transactionStatusReason: str | int
    challengeIndicator: str
    exemptionFlag: str
    schemeData: Mapping[str, str]


class GiftCardParameters(TypedDict, total=False):
    number: str
    pin: str
    holder: str
    message: str
    type: Literal["ANNIVERSARY", "BIRTHDAY", "CONGRATULATIONS", "APRIL_FOOLS_DAY", "EASTER", "FATHERS_DAY", "GRADUATION", "HOLIDAY", "SEASONS_GREETINGS", "PASSOVER", "KWANZAA", "HALLOWEEN", "MOTHERS_DAY", "NEW_YEARS_DAY", "BOSSES_DAY", "ST_PATRICKS_DAY", "SWEETEST_DAY", "CHRISTMAS", "BABY_SHOWER", "THANKSGIVING", "OTHER", "VALENTINES_DAY", "WEDDING", "SECRETARYS_DAY", "CHINESE_NEW_YEAR", "HANUKKAH", "CELEBRATE_FALL", "GRANDPARENTS_DAY", "INDEPENDENCE_DAY"]


class RiskParameters(TypedDict, total=False):
    channelId: str
    serviceId: str
    amount: Amount
    orderTimestamp: str
    brand: str
    parameters: Mapping[str, str]
    merchantWebsite: str
    accountToken: str


class JobParameters(TypedDict, total=False):
    name: str
    year: str
    month: str
    dayOfMonth: str
    dayOfWeek: str
    hour: str
    minute: str
    second: str
    startDate: str
    endDate: str
    noticeUnit: Literal["YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]
    noticeNumber: str | int
    noticeCallable: Literal["ANYTIME", "DURATION_END"]
    durationUnit: Literal["YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]
    durationNumber: str | int
    expression: str


class StandingInstructionParameters(TypedDict, total=False):
    type: Literal["UNSCHEDULED", "INSTALLMENT", "RECURRING"]
    recurringType: Literal["STANDING_ORDER", "SUBSCRIPTION"]
    mode: Literal["INITIAL", "REPEATED"]
    source: Literal["CIT", "MIT"]
    initialTransactionId: str
    industryPractice: Literal["INCREMENTAL_AUTH", "RESUBMISSION", "REAUTHORIZATION", "DELAYED_CHARGES", "NO_SHOW"]
    expiry: str
    frequency: str | int
    numberOfInstallments: str | int
    agreementId: str


class PaymentRequest(TypedDict, total=False):
    entityId: str
    amount: Required[Amount]
    taxAmount: Amount
    discountAmount: Amount
    currency: Required[str]
    paymentBrand: str
    paymentType: Required[str]
    integrity: bool
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    sequence: str
    numberOfCaptures: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    referenceUuid: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    forex: ForexParameters
    card: CardParameters
    wallet1: Wallet1Parameters
    wallet2: Wallet2Parameters
    wallet3: Wallet3Parameters
    virtualAccount: VirtualAccountParameters
    bankAccount: BankAccountParameters
    transactionDueDate: str
    tokenAccount: TokenAccountParameters
    customer: CustomerParameters
    shipping: ShippingParameters
    billing: BillingParameters
    merchant: MerchantParameters
    corporate: CorporateParameters
    sender: SenderParameters
    recipient: RecipientParameters
    cart: CartParameters
    marketPlace: MarketPlaceParameters
    airline: AirlineParameters
    createRegistration: bool
    overrideHolder: bool
    recurringMigration: RecurringMigrationParameters
    threeDSecure: ThreeDSecureParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    giftCard: GiftCardParameters
    risk: RiskParameters
    job: JobParameters
    standingInstruction: StandingInstructionParameters
    chargebackResultCode: str
    accountUpdater: bool


class FollowUpRequest(TypedDict, total=False):
    entityId: str
    amount: Amount
    taxAmount: Amount
    discountAmount: Amount
    currency: str
    paymentBrand: str
    paymentType: Required[str]
    integrity: bool
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    sequence: str
    numberOfCaptures: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    referenceUuid: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    forex: ForexParameters
    transactionDueDate: str
    customer: CustomerParameters
    shipping: ShippingParameters
    billing: BillingParameters
    merchant: MerchantParameters
    corporate: CorporateParameters
    sender: SenderParameters
    recipient: RecipientParameters
    cart: CartParameters
    marketPlace: MarketPlaceParameters
    airline: AirlineParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    risk: RiskParameters
    standingInstruction: StandingInstructionParameters
    chargebackResultCode: str


class CheckoutRequestCardParameters(TypedDict, total=False):
    holder: str


class CheckoutRequestBankAccountParameters(TypedDict, total=False):
    holder: str
    bankName: str
    country: str
    mandate: MandateParameters


class CheckoutRequestGiftCardParameters(TypedDict, total=False):
    holder: str
    message: str
    type: Literal["ANNIVERSARY", "BIRTHDAY", "CONGRATULATIONS", "APRIL_FOOLS_DAY", "EASTER", "FATHERS_DAY", "GRADUATION", "HOLIDAY", "SEASONS_GREETINGS", "PASSOVER", "KWANZAA", "HALLOWEEN", "MOTHERS_DAY", "NEW_YEARS_DAY", "BOSSES_DAY", "ST_PATRICKS_DAY", "SWEETEST_DAY", "CHRISTMAS", "BABY_SHOWER", "THANKSGIVING", "OTHER", "VALENTINES_DAY", "WEDDING", "SECRETARYS_DAY", "CHINESE_NEW_YEAR", "HANUKKAH", "CELEBRATE_FALL", "GRANDPARENTS_DAY", "INDEPENDENCE_DAY"]


class RegistrationsParameters(TypedDict, total=False):
    id: str


class CheckoutRequest(TypedDict, total=False):
    entityId: str
    amount: Amount
    taxAmount: Amount
    discountAmount: Amount
    currency: str
    paymentBrand: str
    paymentType: str
    integrity: bool
    overridePaymentType: Mapping[str, str]
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    sequence: str
    numberOfCaptures: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    paymentPage: bool
    testMode: Literal["EXTERNAL", "INTERNAL"]
    card: CheckoutRequestCardParameters
    bankAccount: CheckoutRequestBankAccountParameters
    giftCard: CheckoutRequestGiftCardParameters
    forex: ForexParameters
    transactionDueDate: str
    customer: CustomerParameters
    shipping: ShippingParameters
    billing: BillingParameters
    merchant: MerchantParameters
    corporate: CorporateParameters
    sender: SenderParameters
    recipient: RecipientParameters
    cart: CartParameters
    marketPlace: MarketPlaceParameters
    airline: AirlineParameters
    createRegistration: bool
    overrideHolder: bool
    recurringMigration: RecurringMigrationParameters
    threeDSecure: ThreeDSecureParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    risk: RiskParameters
    job: JobParameters
    standingInstruction: StandingInstructionParameters
    chargebackResultCode: str
    registrations: Sequence[RegistrationsParameters]
    accountUpdater: bool


class UpdateCheckoutRequestCardParameters(TypedDict, total=False):
    holder: str


class UpdateCheckoutRequestBankAccountParameters(TypedDict, total=False):
    holder: str
    bankName: str
    country: str
    mandate: MandateParameters


class UpdateCheckoutRequestGiftCardParameters(TypedDict, total=False):
    holder: str
    message: str
    type: Literal["ANNIVERSARY", "BIRTHDAY", "CONGRATULATIONS", "APRIL_FOOLS_DAY", "EASTER", "FATHERS_DAY", "GRADUATION", "HOLIDAY", "SEASONS_GREETINGS", "PASSOVER", "KWANZAA", "HALLOWEEN", "MOTHERS_DAY", "NEW_YEARS_DAY", "BOSSES_DAY", "ST_PATRICKS_DAY", "SWEETEST_DAY", "CHRISTMAS", "BABY_SHOWER", "THANKSGIVING", "OTHER", "VALENTINES_DAY", "WEDDING", "SECRETARYS_DAY", "CHINESE_NEW_YEAR", "HANUKKAH", "CELEBRATE_FALL", "GRANDPARENTS_DAY", "INDEPENDENCE_DAY"]


class UpdateCheckoutRequest(TypedDict, total=False):
    entityId: str
    amount: Amount
    taxAmount: Amount
    discountAmount: Amount
    currency: str
    paymentBrand: str
    paymentType: str
    integrity: bool
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    sequence: str
    numberOfCaptures: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    paymentPage: bool
    testMode: Literal["EXTERNAL", "INTERNAL"]
    card: UpdateCheckoutRequestCardParameters
    bankAccount: UpdateCheckoutRequestBankAccountParameters
    giftCard: UpdateCheckoutRequestGiftCardParameters
    forex: ForexParameters
    transactionDueDate: str
    customer: CustomerParameters
    shipping: ShippingParameters
    billing: BillingParameters
    merchant: MerchantParameters
    corporate: CorporateParameters
    sender: SenderParameters
    recipient: RecipientParameters
    cart: CartParameters
    marketPlace: MarketPlaceParameters
    airline: AirlineParameters
    createRegistration: bool
    overrideHolder: bool
    recurringMigration: RecurringMigrationParameters
    threeDSecure: ThreeDSecureParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    risk: RiskParameters
    job: JobParameters
    standingInstruction: StandingInstructionParameters
    chargebackResultCode: str
    registrations: Sequence[RegistrationsParameters]
    accountUpdater: bool


class PaymentLinksRequest(TypedDict, total=False):
    entityId: str
    limit: str
    pageNo: str | int


class LinkParameters(TypedDict, total=False):
    description: str
    reusable: bool
    maxPayments: str | int
    openAmount: bool
    minAmount: Amount
    maxAmount: Amount
    expiresAt: str


class PaymentLinkRequestCustomerParameters(TypedDict, total=False):
    merchantCustomerId: str
    givenName: str
    surname: str
    phone: str
    email: str
    companyName: str
    status: Literal["NEW", "EXISTING"]


class PaymentLinkRequestShippingParameters(TypedDict, total=False):
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    method: Literal["CARRIER_DESIGNATED_BY_CUSTOMER", "ELECTRONIC_DELIVERY", "EXPEDITED", "GROUND", "INTERNATIONAL", "LOWEST_COST", "MILITARY", "NEXT_DAY_OVERNIGHT", "OTHER", "POINT_PICKUP", "PUDO", "SAME_DAY_SERVICE", "STORE_PICKUP", "THREE_DAY_SERVICE", "TWO_DAY_SERVICE"]
    cost: Amount
    comment: str
    expectedDate: str
    logisticsProvider: str
    trackingNumber: str
    returnTrackingNumber: str
    normalized: str
    validationStatus: str
    warehouse: str
    preference: Literal["GET_FROM_FILE", "NO_SHIPPING", "SET_PROVIDED_ADDRESS"]
    middleName: str
    companyName: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    type: Literal["RETURN", "SHIPMENT"]


class CartItemsParameters(TypedDict, total=False):
    name: str
    merchantItemId: str
    quantity: str
    sku: str
    currency: str
    description: str
    price: Amount
    totalAmount: Amount
    taxAmount: Amount
    tax: str


class PaymentLinkRequestCartParameters(TypedDict, total=False):
    items: Sequence[CartItemsParameters]


class PaymentLinkRequest(TypedDict, total=False):
    entityId: str
    amount: Amount
    taxAmount: Amount
    discountAmount: Amount
    currency: Required[str]
    paymentType: Required[str]
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    locale: str
    link: LinkParameters
    testMode: Literal["EXTERNAL", "INTERNAL"]
    customer: PaymentLinkRequestCustomerParameters
    billing: BillingParameters
    shipping: PaymentLinkRequestShippingParameters
    cart: PaymentLinkRequestCartParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str


class RegistrationRequest(TypedDict, total=False):
    entityId: str
    amount: Amount
    taxAmount: Amount
    discountAmount: Amount
    currency: str
    paymentBrand: str
    paymentType: str
    integrity: bool
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    sequence: str
    numberOfCaptures: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    createRegistration: bool
    accountUpdater: bool
    forex: ForexParameters
    card: CardParameters
    virtualAccount: VirtualAccountParameters
    bankAccount: BankAccountParameters
    transactionDueDate: str
    customer: CustomerParameters
    shipping: ShippingParameters
    billing: BillingParameters
    merchant: MerchantParameters
    corporate: CorporateParameters
    sender: SenderParameters
    recipient: RecipientParameters
    cart: CartParameters
    marketPlace: MarketPlaceParameters
    airline: AirlineParameters
    recurringMigration: RecurringMigrationParameters
    threeDSecure: ThreeDSecureParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    risk: RiskParameters
    standingInstruction: StandingInstructionParameters


class UpdateRegistrationRequest(TypedDict, total=False):
    entityId: str
    paymentBrand: str
    card: CardParameters
    bankAccount: BankAccountParameters
    virtualAccount: VirtualAccountParameters
    accountUpdater: bool
    customer: CustomerParameters
    billing: BillingParameters
    customParameters: Mapping[str, str]


class OneClickRequestCardParameters(TypedDict, total=False):
    holder: str
    cvv: str


class OneClickRequestBankAccountParameters(TypedDict, total=False):
    holder: str


class OneClickRequest(TypedDict, total=False):
    entityId: str
    amount: Required[Amount]
    taxAmount: Amount
    discountAmount: Amount
    currency: Required[str]
    paymentBrand: str
    paymentType: Required[str]
    integrity: bool
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    sequence: str
    numberOfCaptures: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    overrideHolder: bool
    card: OneClickRequestCardParameters
    bankAccount: OneClickRequestBankAccountParameters
    giftCard: GiftCardParameters
    threeDSecure: ThreeDSecureParameters
    job: JobParameters
    forex: ForexParameters
    transactionDueDate: str
    customer: CustomerParameters
    shipping: ShippingParameters
    billing: BillingParameters
    merchant: MerchantParameters
    corporate: CorporateParameters
    sender: SenderParameters
    recipient: RecipientParameters
    cart: CartParameters
    marketPlace: MarketPlaceParameters
    airline: AirlineParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    risk: RiskParameters
    standingInstruction: StandingInstructionParameters
    chargebackResultCode: str


class ScheduleRequestCustomerParameters(TypedDict, total=False):
    merchantCustomerId: str
    givenName: str
    middleName: str
    surname: str
    sex: Literal["M", "F"]
    birthDate: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    companyName: str
    identificationDocType: Literal["IDCARD", "PASSPORT", "TAXSTATEMENT"]
    ip: str
    merchantReference: str
    salutation: Literal["MR", "MRS", "MS", "MX"]
    language: str
    category: Literal["INDIVIDUAL", "COMPANY"]
    browserFingerprint: BrowserFingerprintParameters
    browser: BrowserParameters
    app: AppParameters
    status: Literal["NEW", "EXISTING"]


class ScheduleRequestShippingParameters(TypedDict, total=False):
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    method: Literal["CARRIER_DESIGNATED_BY_CUSTOMER", "ELECTRONIC_DELIVERY", "EXPEDITED", "GROUND", "INTERNATIONAL", "LOWEST_COST", "MILITARY", "NEXT_DAY_OVERNIGHT", "OTHER", "POINT_PICKUP", "PUDO", "SAME_DAY_SERVICE", "STORE_PICKUP", "THREE_DAY_SERVICE", "TWO_DAY_SERVICE"]
    cost: Amount
    comment: str
    expectedDate: str
    logisticsProvider: str
    trackingNumber: str
    returnTrackingNumber: str
    normalized: str
    validationStatus: str
    warehouse: str
    preference: Literal["GET_FROM_FILE", "NO_SHIPPING", "SET_PROVIDED_ADDRESS"]
    middleName: str
    companyName: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    type: Literal["RETURN", "SHIPMENT"]


class ScheduleRequestMerchantParameters(TypedDict, total=False):
    name: str
    mcc: str
    street: str
    city: str
    state: str
    countryCode: str
    country: str
    postcode: str
    geographicCoordinates: str
    serviceLocationCity: str
    serviceLocationState: str
    serviceLocationCountryCode: str
    serviceLocationPostCode: str
    serviceLocationGeographicCoordinates: str
    additionalContact: str
    phone: str
    customerContactPhone: str
    websiteId: str
    url: str
    partnerIdCode: str
    isoId: str
    payFacId: str
    payFacName: str
    submerchantId: str
    marketplaceId: str
    taxId: str
    data: Mapping[str, str]
    foreignRetailIndicator: str
    legalName: str
    app: MerchantAppParameters


class ScheduleRequestCartParameters(TypedDict, total=False):
    items: Sequence[ItemsParameters]


class ScheduleRequest(TypedDict, total=False):
    entityId: str
    registrationId: Required[str]
    amount: Required[Amount]
    taxAmount: Amount
    discountAmount: Amount
    currency: Required[str]
    paymentBrand: str
    paymentType: Required[str]
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    merchantMemo: str
    transactionCategory: str
    promotionCode: str
    locale: str
    transactionPurposeCode: str
    integrationType: str
    transactionBai: str
    transactionTti: str
    transactionProcessingCode: Literal["PURCHASE", "FUNDING", "PAYMENT"]
    lifecycleId: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    job: JobParameters
    customer: ScheduleRequestCustomerParameters
    billing: BillingParameters
    shipping: ScheduleRequestShippingParameters
    merchant: ScheduleRequestMerchantParameters
    cart: ScheduleRequestCartParameters
    customParameters: Mapping[str, str]
    risk: RiskParameters
    standingInstruction: StandingInstructionParameters


class RescheduleRequest(TypedDict, total=False):
    entityId: str
    registrationId: str
    amount: Amount
    currency: str
    paymentType: str
    descriptor: str
    merchantTransactionId: str
    merchantInvoiceId: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    job: JobParameters
    customParameters: Mapping[str, str]


class DescheduleRequest(TypedDict, total=False):
    entityId: str
    paymentType: str
    testMode: Literal["EXTERNAL", "INTERNAL"]


class ThreeDSecureRequestCardParameters(TypedDict, total=False):
    holder: str
    number: Required[str]
    expiryMonth: Required[str]
    expiryYear: Required[str]
    cvv: str
    numberType: Literal["PAN", "DPAN"]


class ThreeDSecureRequestShippingParameters(TypedDict, total=False):
    street1: str
    street2: str
    houseNumber1: str
    houseNumber2: str
    city: str
    state: str
    postcode: str
    country: str
    method: Literal["CARRIER_DESIGNATED_BY_CUSTOMER", "ELECTRONIC_DELIVERY", "EXPEDITED", "GROUND", "INTERNATIONAL", "LOWEST_COST", "MILITARY", "NEXT_DAY_OVERNIGHT", "OTHER", "POINT_PICKUP", "PUDO", "SAME_DAY_SERVICE", "STORE_PICKUP", "THREE_DAY_SERVICE", "TWO_DAY_SERVICE"]
    cost: Amount
    comment: str
    expectedDate: str
    logisticsProvider: str
    trackingNumber: str
    returnTrackingNumber: str
    normalized: str
    validationStatus: str
    warehouse: str
    preference: Literal["GET_FROM_FILE", "NO_SHIPPING", "SET_PROVIDED_ADDRESS"]
    middleName: str
    companyName: str
    phone: str
    mobile: str
    workPhone: str
    email: str
    type: Literal["RETURN", "SHIPMENT"]


class ThreeDSecureRequestMerchantParameters(TypedDict, total=False):
    name: str
    mcc: str
    street: str
    city: str
    state: str
    countryCode: str
    country: str
    postcode: str
    geographicCoordinates: str
    serviceLocationCity: str
    serviceLocationState: str
    serviceLocationCountryCode: str
    serviceLocationPostCode: str
    serviceLocationGeographicCoordinates: str
    additionalContact: str
    phone: str
    customerContactPhone: str
    websiteId: str
    url: str
    partnerIdCode: str
    isoId: str
    payFacId: str
    payFacName: str
    submerchantId: str
    marketplaceId: str
    taxId: str
    data: Mapping[str, str]
    foreignRetailIndicator: str
    legalName: str
    app: MerchantAppParameters


class ThreeDSecureRequestThreeDSecureParameters(TypedDict, total=False):
    amount: Amount
    currency: str
    deviceInfo: str
    merchant: ThreeDSecureMerchantParameters
    v2: V2Parameters
    channel: str
    npa: bool
    decoupled: bool
    threeRIInd: Literal["RECURRING", "SPLIT_SHIPMENT", "DELAYED_SHIPMENT"]
    authenticationInd: Literal["PAYMENT", "RECURRING", "INSTALLMENT", "ADD_CARD", "MAINTAIN_CARD", "EMV_ID", "BILLING_AGREEMENT", "SPLIT_SHIPMENT", "_DELAYED_SHIPMENT", "SPLIT_PAYMENT"]
    challengeIndicator: str
    exemptionFlag: str
    schemeData: Mapping[str, str]


class ThreeDSecureRequest(TypedDict, total=False):
    entityId: str
    amount: Required[Amount]
    currency: Required[str]
    paymentBrand: str
    paymentType: str
    merchantTransactionId: str
    testMode: Literal["EXTERNAL", "INTERNAL"]
    card: ThreeDSecureRequestCardParameters
    customer: CustomerParameters
    billing: BillingParameters
    shipping: ThreeDSecureRequestShippingParameters
    merchant: ThreeDSecureRequestMerchantParameters
    threeDSecure: ThreeDSecureRequestThreeDSecureParameters
    customParameters: Mapping[str, str]
    shopperResultUrl: str
    notificationUrl: str
    risk: RiskParameters
    standingInstruction: StandingInstructionParameters


DateParameters = TypedDict("DateParameters", {
    "from": str,
    "to": str,
}, total=False)


class QueryRequest(TypedDict, total=False):
    entityId: str
    merchantTransactionId: str
    limit: str | int
    date: DateParameters
    paymentTypes: str
    paymentMethods: str
    includeLinkedTransactions: bool
    shortId: str


class QueryOneRequest(TypedDict, total=False):
    entityId: str
    paymentTypes: str
    paymentMethods: str
    includeLinkedTransactions: bool


class QueryRecordsRequest(TypedDict, total=False):
    entityId: str
    merchantTransactionId: str
    limit: str | int
    date: DateParameters
    paymentTypes: str
    paymentMethods: str
    includeLinkedTransactions: bool
    shortId: str
    pageNo: str | int


class QueryRecordRequest(TypedDict, total=False):
    entityId: str
    paymentTypes: str
    paymentMethods: str
    includeLinkedTransactions: bool


class CardFactsRequestCardParameters(TypedDict, total=False):
    bin: Required[str]


class CardFactsRequest(TypedDict, total=False):
    entityId: str
    card: CardFactsRequestCardParameters


SettlementsRequestDateParameters = TypedDict("SettlementsRequestDateParameters", {
    "from": Required[str],
    "to": Required[str],
}, total=False)


class SettlementsRequest(TypedDict, total=False):
    entityId: str
    date: SettlementsRequestDateParameters
    currency: str
    testMode: Literal["EXTERNAL", "INTERNAL"]


class SettlementRequest(TypedDict, total=False):
    entityId: str
    date: DateParameters
    sortValue: Literal["SettlementTxDate"]
    sortOrder: Literal["ASC", "DESC"]
    testMode: Literal["EXTERNAL", "INTERNAL"]


AggregationsRequestDateParameters = TypedDict("AggregationsRequestDateParameters", {
    "from": Required[str],
    "to": Required[str],
}, total=False)


class AggregationsRequest(TypedDict, total=False):
    entityId: str
    date: AggregationsRequestDateParameters
    currency: str
    testMode: Literal["EXTERNAL", "INTERNAL"]


class AggregationRequest(TypedDict, total=False):
    entityId: str
    date: DateParameters
    sortValue: Literal["SettlementTxDate"]
    sortOrder: Literal["ASC", "DESC"]
    testMode: Literal["EXTERNAL", "INTERNAL"]


AggregationsPageRequestDateParameters = TypedDict("AggregationsPageRequestDateParameters", {
    "from": Required[str],
    "to": Required[str],
}, total=False)


class AggregationsPageRequest(TypedDict, total=False):
    entityId: str
    date: AggregationsPageRequestDateParameters
    currency: str
    reconciliationType: Literal["SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"]
    pageNo: str | int
    testMode: Literal["EXTERNAL", "INTERNAL"]


class AggregationPageRequest(TypedDict, total=False):
    entityId: str
    date: DateParameters
    sortValue: Literal["SettlementTxDate"]
    sortOrder: Literal["ASC", "DESC"]
    reconciliationType: Literal["SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"]
    pageNo: str | int
    testMode: Literal["EXTERNAL", "INTERNAL"]


ApprovalsRequestDateParameters = TypedDict("ApprovalsRequestDateParameters", {
    "from": Required[str],
    "to": Required[str],
}, total=False)


class ApprovalsRequest(TypedDict, total=False):
    entityId: str
    date: ApprovalsRequestDateParameters
    groupBy: Literal["all", "day", "hour", "brand", "country", "issuer", "cardType", "cardLevel", "bin", "acquirer", "means", "threeDSecure", "shopper"]
    currency: str


ApprovalsWaterfallRequestDateParameters = TypedDict("ApprovalsWaterfallRequestDateParameters", {
    "from": Required[str],
    "to": Required[str],
}, total=False)


class ApprovalsWaterfallRequest(TypedDict, total=False):
    entityId: str
    date: ApprovalsWaterfallRequestDateParameters
    currency: str


ApprovalsGainsRequestDateParameters = TypedDict("ApprovalsGainsRequestDateParameters", {
    "from": Required[str],
    "to": Required[str],
}, total=False)


class ApprovalsGainsRequest(TypedDict, total=False):
    entityId: str
    date: ApprovalsGainsRequestDateParameters
    currency: str


class MoveClockRequest(TypedDict, total=False):
    entityId: str
    advance: str | int
    now: str


class AcquirerMessagesRequest(TypedDict, total=False):
    entityId: str
    id: Required[str]


class ChangeNetworkTokenRequest(TypedDict, total=False):
    entityId: str
    event: Required[Literal["SUSPENDED", "RESUMED", "REPLACED", "DELETED"]]


class MailsRequest(TypedDict, total=False):
    entityId: str
    id: Required[str]


class DecideTransferRequest(TypedDict, total=False):
    entityId: str
    outcome: Required[Literal["arrived", "returned"]]


class MakeWalletTokenRequest(TypedDict, total=False):
    entityId: str
    wallet: Required[Literal["wallet1", "wallet2", "wallet3"]]
    format: Literal["ec_v1", "rsa_v1", "ecv2", "ecv1", "jwe"]
    amount: Required[Amount]
    currency: Required[str]
    number: str
    proof: Literal["cryptogram", "none"]
    defect: Literal["expired", "tampered"]


class ReadWebhooksRequest(TypedDict, total=False):
    entityId: str
    mode: Literal["signed", "encrypted"]
    after: str | int


class OpenInspectorRequest(TypedDict, total=False):
    entityId: str
    mode: Literal["signed", "encrypted"]
