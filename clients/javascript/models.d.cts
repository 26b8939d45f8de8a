// Generated from the OpenAPI document by `make clients`. Do not edit.

/** One fault. All faults of a request are told at once. */
export interface ParameterError {
  /** The parameter at fault. */
  readonly name: string;
  /** What was sent, masked and shortened; missing when nothing was. */
  readonly value?: string;
  /** What is allowed, with an example. */
  readonly message: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What came of the request. */
export interface Result {
  /** The result code; /v1/resultcodes lists them. */
  readonly code: string;
  /** The code in words. */
  readonly description: string;
  /** The address check's answer. */
  readonly avsResponse?: string;
  /** The security code check's answer. */
  readonly cvvResponse?: string;
  readonly parameterErrors?: ParameterError[];
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What is known of the card. Number and CVV never come back. */
export interface Card {
  /** The first six digits. */
  readonly bin?: string;
  /** The last four digits. */
  readonly last4Digits?: string;
  /** As sent. */
  readonly holder?: string;
  /** As sent. */
  readonly expiryMonth?: string;
  /** As sent. */
  readonly expiryYear?: string;
  /** Who issued the card: bank, phone, website. */
  readonly issuer?: any;
  /** CREDIT, DEBIT or PREPAID. */
  readonly type?: string;
  /** E.g. CLASSIC. */
  readonly level?: string;
  /** Whether its interchange is regulated. */
  readonly regulatedFlag?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The acquirer's own words; other names may stand here too, with texts. */
export interface PaymentResultDetails {
  /** The acquirer's original code; empty where none was told. */
  readonly AcquirerResponse: string;
  /** The acquirer's words, else ours. */
  readonly ExtendedDescription: string;
  /** Why it was declined and what to do next. */
  readonly MerchantAdviceCode?: string;
  /** Of a PA: until when it may be captured, UTC. */
  readonly authorizationExpiresAt?: string;
  /** Of a PA whose time has passed uncaptured. */
  readonly authorizationExpired?: string;
  /** Of an archived payment: since when; what was personal is gone. */
  readonly archivedAt?: string;
  /** Of a stored card with a network token: the token was sent; the card number was, since no cryptogram came; the card number was, after the token had been declined. */
  readonly NetworkToken?: string;
  /** Of a refund, reversal or payout that came back, or failed after all. */
  readonly transferReturned?: string;
  /** The reason: the bank's, of ISO 20022, or the processor's word. */
  readonly transferReturnReason?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A payment. Every accepted structure of the request comes back beside these fields, nested. */
export interface Payment {
  /** The payment's id: follow-ups refer to it. */
  readonly id: string;
  /** The payment a follow-up refers to. */
  readonly referencedId?: string;
  /** The operation, e.g. DB. */
  readonly paymentType: string;
  /** The brand, as sent or detected. */
  readonly paymentBrand: string;
  /** What was approved; on a decline, what was asked for. */
  readonly amount: string;
  readonly currency: string;
  /** What the shopper's statement says: as sent, else the chain's, else the channel's own. */
  readonly descriptor: string;
  /** The acquirer's own words; other names may stand here too, with texts. */
  readonly resultDetails?: PaymentResultDetails;
  readonly card?: Card;
  /** The brand that was detected. */
  readonly brandResult?: string;
  /** As sent, with score where a rule set screened: a sign and five digits, -99999 to +99999. */
  readonly risk?: any;
  /** As sent. */
  readonly customParameters?: any;
  /** The registration that was paid with, or made. */
  readonly registrationId?: string;
  /** Its id once more. */
  readonly registration?: any;
  /** Test environment only. */
  readonly testMode?: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** An authentication without a payment. */
export interface Authentication {
  /** The authentication's id. */
  readonly id: string;
  /** 3D. */
  readonly paymentType: string;
  /** The brand, as sent or detected. */
  readonly paymentBrand: string;
  /** What was authenticated. */
  readonly amount: string;
  readonly currency: string;
  readonly card?: Card;
  /** How it went: flow, version, authenticationStatus; the proof once there is one. */
  readonly threeDSecure?: any;
  /** Where the shopper is sent to while the answer is pending. */
  readonly redirect?: any;
  /** Test environment only. */
  readonly testMode?: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A stored means of payment. It has no paymentType. */
export interface Registration {
  /** The registration's id: one-click payments name it. */
  readonly id: string;
  /** The brand, as sent or detected. */
  readonly paymentBrand: string;
  readonly card?: Card;
  /** What is stored of a bank account; its number is masked. */
  readonly bankAccount?: any;
  /** What is stored of a virtual account. */
  readonly virtualAccount?: any;
  /** The card's network token, if it has one: status, last4Digits, expiry date. */
  readonly networkToken?: any;
  /** What the account updater last changed of the card: answer, at. */
  readonly accountUpdate?: any;
  /** Test environment only. */
  readonly testMode?: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The plan as it stands. */
export interface SchedulePlan {
  /** Whether it runs. */
  readonly active: boolean;
  /** ACTIVE, ENDING, SUSPENDED or ENDED. */
  readonly state: string;
  /** Why it is not ACTIVE. */
  readonly reason?: string;
  /** Its times: second minute hour dayOfMonth month dayOfWeek year. */
  readonly expression: string;
  /** The zone of these times. */
  readonly timeZone: string;
  /** No run then or later. */
  readonly endsAt?: string;
  readonly nextRuns: string[];
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** ScheduleRuns. */
export interface ScheduleRuns {
  /** When it was due. */
  readonly dueAt: string;
  /** OPEN, PAID, RETRYING, FAILED, SKIPPED or MISSED. */
  readonly state: string;
  /** How often it was tried. */
  readonly attempt: number;
  /** The payment of the last try. */
  readonly id?: string;
  /** Its result. */
  readonly code?: string;
  /** When it is tried again. */
  readonly retryAt?: string;
  /** The chance that this retry is approved, 0.00 to 1.00, where the channel's retries are timed by outcomes. */
  readonly retryChance?: string;
  /** Up to when runs were left out. */
  readonly missedUntil?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A subscription job. */
export interface Schedule {
  /** The job's id. */
  readonly id: string;
  /** What each run makes. */
  readonly paymentType: string;
  /** The registration's brand. */
  readonly paymentBrand?: string;
  /** What each run takes. */
  readonly amount: string;
  readonly currency: string;
  /** What the shopper's statement says: as sent, else the chain's, else the channel's own. */
  readonly descriptor: string;
  /** The registration that is charged. */
  readonly registrationId: string;
  /** As sent. */
  readonly job?: any;
  /** The plan as it stands. */
  readonly plan: SchedulePlan;
  /** The last runs, the newest first (GET only). */
  readonly runs?: ScheduleRuns[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A checkout that was created or updated. Its ndc is its id. */
export interface Checkout {
  /** The checkout's id, for the widget and for what follows. */
  readonly id: string;
  /** The script's hash, when integrity=true was sent. */
  readonly integrity?: string;
  /** The address of the page that has the form, when paymentPage=true was sent. */
  readonly paymentPage?: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A payment link as it stands. */
export interface PaymentLink {
  /** The link's id. It is a capability: it lets its holder pay. */
  readonly id: string;
  /** The address that shoppers get. */
  readonly url: string;
  /** ACTIVE, PAID (as often as it may be), EXPIRED or DEACTIVATED. */
  readonly state: string;
  /** What each payment takes; missing where the shopper enters it. */
  readonly amount?: string;
  readonly currency: string;
  /** What each payment is. */
  readonly paymentType: string;
  /** As sent; the payments carry it. */
  readonly merchantTransactionId?: string;
  /** How it is paid, as sent, with the values that were left out. */
  readonly link: any;
  /** How often it was paid. */
  readonly paidCount: number;
  /** How much was paid, in the link's currency. */
  readonly paidAmount: string;
  /** When it was made, in UTC. */
  readonly createdAt: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A payment link as it stands. */
export interface PaymentLinksPaymentLinks {
  /** The link's id. It is a capability: it lets its holder pay. */
  readonly id: string;
  /** The address that shoppers get. */
  readonly url: string;
  /** ACTIVE, PAID (as often as it may be), EXPIRED or DEACTIVATED. */
  readonly state: string;
  /** What each payment takes; missing where the shopper enters it. */
  readonly amount?: string;
  readonly currency: string;
  /** What each payment is. */
  readonly paymentType: string;
  /** As sent; the payments carry it. */
  readonly merchantTransactionId?: string;
  /** How it is paid, as sent, with the values that were left out. */
  readonly link: any;
  /** How often it was paid. */
  readonly paidCount: number;
  /** How much was paid, in the link's currency. */
  readonly paidAmount: string;
  /** When it was made, in UTC. */
  readonly createdAt: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Payment links, the newest first. */
export interface PaymentLinks {
  readonly paymentLinks: PaymentLinksPaymentLinks[];
  /** How many pages there are. */
  readonly pages: number;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The payment object (see Payment) or the registration, once there is one; the envelope alone until then. */
export interface CheckoutResult {
  /** The payment's or registration's id; missing until the shopper has paid. */
  readonly id?: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The merchant's clock. */
export interface Clock {
  /** The merchant's time. */
  readonly now: string;
  /** How far it is ahead of the real time. */
  readonly offsetSeconds: number;
  /** After a move: it is where it was to go. If not, repeat. */
  readonly complete?: boolean;
  /** After a move: how far it still has to go. */
  readonly remainingSeconds?: number;
  /** After a move: what it did on the way, by timer. */
  readonly ran?: any;
  /** After a move: timers with something due that nobody could do yet. */
  readonly waiting?: string[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A token to try with. */
export interface WalletToken {
  /** The wallet that the token is for. */
  readonly wallet: string;
  /** The format it is in. */
  readonly format: string;
  /** To be sent as walletn.paymentToken, unchanged. */
  readonly paymentToken: string;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** AcquirerMessagesMessages. */
export interface AcquirerMessagesMessages {
  /** Which connector spoke. */
  readonly connector: string;
  /** submit, or inquire for a question asked again. */
  readonly kind: string;
  readonly sent?: any;
  readonly received?: any;
  readonly durationMs?: number;
  /** When. */
  readonly at?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What was said to the acquirer, masked. */
export interface AcquirerMessages {
  /** The payment. */
  readonly id: string;
  readonly messages: AcquirerMessagesMessages[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** MailsMails. */
export interface MailsMails {
  /** MANDATE: a direct debit's mandate. NOTICE: the notice of a later collection. */
  readonly kind: string;
  /** DUE, SENT, KNOWN (the mandate was mailed before) or GIVEN_UP. */
  readonly state: string;
  /** The mandate's id. */
  readonly mandate?: string;
  /** To whom. */
  readonly to: string;
  /** A language code of the form. */
  readonly language?: string;
  /** The subject. */
  readonly subject: string;
  /** The mail, as it was sent or will be. */
  readonly text: string;
  readonly tries?: number;
  /** Why the last try did not succeed. */
  readonly failure?: string;
  /** When it was sent. */
  readonly at?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What a payment's shopper was sent by mail. */
export interface Mails {
  /** The payment. */
  readonly id: string;
  readonly mails: MailsMails[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The built-in webhook inspector. */
export interface Inspector {
  /** signed or encrypted. */
  readonly mode: string;
  /** active: messages are kept. */
  readonly state: string;
  /** What messages are signed or encrypted with: 64 hex digits. */
  readonly secret: string;
  /** The number of the newest message; 0 for none. */
  readonly newest: number;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** KeptWebhooksWebhooks. */
export interface KeptWebhooksWebhooks {
  /** Rises from message to message. */
  readonly number: number;
  /** When it was made. */
  readonly at: string;
  readonly headers: any;
  /** As it would have been sent. */
  readonly body: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Webhooks that the inspector has kept. */
export interface KeptWebhooks {
  readonly webhooks: KeptWebhooksWebhooks[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** RequestLogRequests. */
export interface RequestLogRequests {
  /** The request's number. */
  readonly ndc: string;
  /** When. */
  readonly at: string;
  /** The method. */
  readonly method: string;
  /** The path. */
  readonly path: string;
  /** Of the answer. */
  readonly status: number;
  /** Of the answer. */
  readonly resultCode: string;
  readonly durationMs: number;
  /** The payment it made or read, if any. */
  readonly payment?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The newest requests. */
export interface RequestLog {
  readonly requests: RequestLogRequests[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** The acquirer's own words; other names may stand here too, with texts. */
export interface ListedResultDetails {
  /** The acquirer's original code; empty where none was told. */
  readonly AcquirerResponse: string;
  /** The acquirer's words, else ours. */
  readonly ExtendedDescription: string;
  /** Why it was declined and what to do next. */
  readonly MerchantAdviceCode?: string;
  /** Of a PA: until when it may be captured, UTC. */
  readonly authorizationExpiresAt?: string;
  /** Of a PA whose time has passed uncaptured. */
  readonly authorizationExpired?: string;
  /** Of an archived payment: since when; what was personal is gone. */
  readonly archivedAt?: string;
  /** Of a stored card with a network token: the token was sent; the card number was, since no cryptogram came; the card number was, after the token had been declined. */
  readonly NetworkToken?: string;
  /** Of a refund, reversal or payout that came back, or failed after all. */
  readonly transferReturned?: string;
  /** The reason: the bank's, of ISO 20022, or the processor's word. */
  readonly transferReturnReason?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A transaction in a list: the payment object, its own time and number with it. */
export interface Listed {
  /** The transaction's id. */
  readonly id: string;
  /** The same, to say on the phone. */
  readonly shortId?: string;
  /** E.g. DB. */
  readonly paymentType?: string;
  /** E.g. CC. */
  readonly paymentMethod?: string;
  /** The brand, as sent or detected. */
  readonly paymentBrand?: string;
  /** What was approved; on a decline, what was asked for. */
  readonly amount?: string;
  readonly currency?: string;
  /** What the shopper's statement says: as sent, else the chain's, else the channel's own. */
  readonly descriptor?: string;
  readonly result: Result;
  /** The acquirer's own words; other names may stand here too, with texts. */
  readonly resultDetails?: ListedResultDetails;
  /** When it was made, UTC. */
  readonly requestTimestamp?: string;
  /** The same. */
  readonly timestamp?: string;
  /** The number of the request that made it. */
  readonly ndc?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Transactions, the newest first. */
export interface PaymentList {
  readonly payments: Listed[];
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Transactions. */
export interface RecordList {
  readonly records: Listed[];
  /** How many pages; where pageNo is sent. */
  readonly pages?: number;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What an institute paid out at once. */
export interface Settlement {
  /** The settlement's id, for its records. */
  readonly id: string;
  /** The institute's name of the payout. */
  readonly reference?: string;
  /** When it was paid. */
  readonly date: string;
  readonly currency: string;
  /** Paid out: POS less NEG, of the records that succeeded. */
  readonly amount: string;
  /** Fees among it, of the same records. */
  readonly fee: string;
  /** Its records. */
  readonly count: number;
  /** name, merchantId. */
  readonly clearingInstitute?: any;
  /** id, name; missing where it is not known. */
  readonly merchantAccount?: any;
  /** Count and sums by recordType, transactionType, cashflow and status. */
  readonly records: any[];
  /** How many are MATCHED, MULTIPLE_MATCHES, NOT_MATCHED. */
  readonly matchedTransactions?: any;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Settlements, the earliest first. */
export interface Settlements {
  readonly aggregations: Settlement[];
  /** How many pages; on /reports/v2/… only. */
  readonly pages?: number;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What the table of BINs knows of the cards that begin so. A fact that is missing is not known. */
export interface CardFacts {
  /** The first six digits. */
  readonly bin: string;
  /** What one card carries; the first is the one you prefer. Empty: no brand is known. */
  readonly brands: string[];
  /** Who issued the card: bank, phone, website. */
  readonly issuer?: any;
  /** Where. */
  readonly issuerCountry?: string;
  /** CREDIT, DEBIT or PREPAID. */
  readonly type?: string;
  /** E.g. CLASSIC. */
  readonly level?: string;
  /** Whether its interchange is regulated. */
  readonly regulatedFlag?: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What is known of a card. */
export interface CardFactsAnswer {
  readonly card: CardFacts;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A share with its interval; missing where nothing was counted. */
export interface RateInterval {
  /** Percent. */
  readonly rate: string;
  /** Lower end of Wilson's interval of 95 %. */
  readonly low: string;
  /** Upper end. */
  readonly high: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Purchases' money in one currency. */
export interface ApprovalRateAmounts {
  readonly currency: string;
  /** Of all purchases. */
  readonly asked: string;
  /** Of the approved ones. */
  readonly approved: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** One part of the payments. */
export interface ApprovalRate {
  /** Which part: a brand, BIN, day …; all without groupBy. */
  readonly segment: string;
  /** Attempts that an acquirer answered. */
  readonly attempts: number;
  /** Approved ones among them. */
  readonly approvedAttempts: number;
  readonly attemptRate?: RateInterval;
  /** What shoppers wanted, each counted once. */
  readonly purchases: number;
  /** Those with an approved attempt. */
  readonly approvedPurchases: number;
  readonly purchaseRate?: RateInterval;
  readonly amounts: ApprovalRateAmounts[];
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Approval rates of a period. */
export interface ApprovalRates {
  /** What the figures are divided by. */
  readonly groupBy: string;
  readonly approvals: ApprovalRate[];
  /** false: the period has more payments than are counted; only the newest are. */
  readonly complete: boolean;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A step. */
export interface ApprovalWaterfallSteps {
  /** wanted, sent, approved, settled; or why purchases were lost, e.g. funds. */
  readonly step: string;
  /** The same in words. */
  readonly description: string;
  /** Whether it was lost here, or left up to here. */
  readonly lost: boolean;
  /** How many. */
  readonly purchases: number;
  /** Their money. */
  readonly amount: string;
  /** Percent of the first step's money. */
  readonly share: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** From what shoppers wanted to pay to what is settled, in one currency. What is lost adds up. */
export interface ApprovalWaterfall {
  readonly currency: string;
  /** Checkouts opened. */
  readonly checkouts: number;
  readonly steps: ApprovalWaterfallSteps[];
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Where a period's money is lost, by currency, the largest first. */
export interface ApprovalWaterfalls {
  readonly waterfalls: ApprovalWaterfall[];
  /** false: the period has more payments than are counted; only the newest are. */
  readonly complete: boolean;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** How much of it the switch may bring; missing where too few payments can be compared. */
export interface ApprovalGainMayBring {
  /** At least. */
  readonly low: string;
  /** At most. */
  readonly high: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Where to switch it on, or to try it. */
export interface ApprovalGainSwitch {
  /** What the page, or the link to it, is called. */
  readonly name: string;
  /** Its address in the back office. */
  readonly page: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A way to more approvals. */
export interface ApprovalGain {
  /** Which way, e.g. soft, updater, second. */
  readonly way: string;
  /** What to do. */
  readonly title: string;
  readonly currency: string;
  /** The money lost. */
  readonly lost: string;
  /** How much of it the switch may bring; missing where too few payments can be compared. */
  readonly mayBring?: ApprovalGainMayBring;
  /** What was counted. */
  readonly evidence: string;
  /** Where to switch it on, or to try it. */
  readonly switch: ApprovalGainSwitch;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** What would bring most: of each currency what surely brings most first. */
export interface ApprovalGains {
  readonly gains: ApprovalGain[];
  /** false: the period has more payments than are counted; only the newest are. */
  readonly complete: boolean;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** A settlement with its records. */
export interface SettlementRecords {
  /** The settlement's id. */
  readonly id: string;
  readonly aggregation?: Settlement;
  /** Each under the API names of the reconciliation file's columns. */
  readonly reconciliations: any[];
  /** How many pages; on /reports/v2/… only. */
  readonly pages?: number;
  /** Names that were sent and that nothing knows; they changed nothing. */
  readonly ignoredParameters?: string[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** ResultCodesResultCodes. */
export interface ResultCodesResultCodes {
  readonly code: string;
  readonly description: string;
  /** See the docs for what to do next. */
  readonly family: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

/** Every result code of this gateway. */
export interface ResultCodes {
  readonly resultCodes: ResultCodesResultCodes[];
  readonly result: Result;
  /** Which build answered. */
  readonly buildNumber: string;
  /** When, in UTC. */
  readonly timestamp: string;
  /** The request's own number: quote it when you ask us. */
  readonly ndc: string;
  /** What the API has besides. */
  readonly [name: string]: any;
}

export interface ForexParameters {
  /** Conditional. Format: decimal amount. When a currency is converted during the transaction. */
  amount?: string;
  /** Conditional. Format: A3 uppercase, ISO 4217. When a currency is converted during the transaction. */
  currency?: string;
}

export interface CardParameters {
  /** Optional. Format: A 3-128. */
  holder?: string;
  /** Required. Format: N 8-32. Card or account number. */
  number?: string;
  /** Required. Format: N2, 01 to 12. */
  expiryMonth?: string;
  /** Required. Format: N4, 19xx or 20xx. */
  expiryYear?: string;
  /** Conditional. Format: N 3-4. Asked for on channels that demand it. */
  cvv?: string;
  /** Optional. Format: PAN or DPAN. Whether the number is the card's own or a device's. */
  numberType?: "PAN" | "DPAN";
}

export interface Wallet1Parameters {
  /** Required. Format: format defined by the wallet provider. The encrypted token, unchanged. */
  paymentToken?: string;
  /** Optional. Format: as supplied by the wallet in its payment-method network field. The wallet's network field. */
  cardNetwork?: string;
  /** Optional. Format: as supplied by the wallet in its payment-method type field. The wallet's type field. */
  cardType?: string;
  /** Required. Format: web or app. Where the decrypted card data came from. */
  source?: "web" | "app";
}

export interface Wallet2Parameters {
  /** Required. Format: format defined by the wallet provider. The encrypted token, unchanged. */
  paymentToken?: string;
  /** Required. Format: web or app. Where the decrypted card data came from. */
  source?: "web" | "app";
}

export interface Wallet3Parameters {
  /** Required. Format: format defined by the wallet provider. The encrypted token, unchanged. */
  paymentToken?: string;
  /** Required. Format: web or app. Where the decrypted card data came from. */
  source?: "web" | "app";
}

export interface VirtualAccountParameters {
  /** Required. Format: AN 1-100. The shopper's id at the provider of the account. */
  accountId?: string;
}

export interface MandateParameters {
  /** Conditional. Format: letters and hyphens, up to 256. The direct-debit mandate. Left out of risk checks. */
  id?: string;
  /** Conditional. Format: date. Left out of risk checks. */
  dateOfSignature?: string;
}

export interface BankAccountParameters {
  /** Required. Format: AN 4-128. */
  holder?: string;
  /** Conditional. Format: AN 1-255. */
  bankName?: string;
  /** Conditional. Format: AN 3-64 letters and digits. number or iban is required. */
  number?: string;
  /** Conditional. Format: AN up to 31: 2 letters, 2 digits, then 11-27 letters/digits. number or iban is required. */
  iban?: string;
  /** Conditional. Format: AN 1-12 letters and digits. bankCode or bic is required. */
  bankCode?: string;
  /** Conditional. Format: AN 8 or 11 letters and digits. bankCode or bic is required. */
  bic?: string;
  /** Conditional. Format: A2, ISO 3166-1. */
  country?: string;
  mandate?: MandateParameters;
}

export interface TokenAccountParameters {
  /** Required. Format: N 12-19. The token of an external provider. */
  number?: string;
  /** Required. Format: EXTERNAL or NETWORK. */
  type?: "EXTERNAL" | "NETWORK";
  /** Optional. Format: N2, 01 to 12. */
  expiryMonth?: string;
  /** Optional. Format: N4, 19xx or 20xx. */
  expiryYear?: string;
  /** Conditional. Format: AN 28-32, base64 encoded. Dynamic data that proves the use of the token. */
  cryptogram?: string;
  /** Conditional. Format: N 3-4. Dynamic one-time token verification code. */
  dtvc?: string;
}

export interface BrowserFingerprintParameters {
  /** Optional. Format: 1-255. */
  id?: string;
  /** Optional. Format: 1-4096. */
  value?: string;
}

export interface BrowserParameters {
  /** Conditional. Format: 1-2048. Exact HTTP accept header. Mandatory for 3D Secure v2. */
  acceptHeader?: string;
  /** Conditional. Format: 1-8. Language tag (BCP 47). Mandatory for 3D Secure v2. */
  language?: string;
  /** Conditional. Format: 1-6. Pixels. Mandatory for 3D Secure v2. */
  screenHeight?: string | number;
  /** Conditional. Format: 1-6. Pixels. Mandatory for 3D Secure v2. */
  screenWidth?: string | number;
  /** Conditional. Format: 1-5. Minutes between UTC and local time, negative when ahead. Mandatory for 3D Secure v2. */
  timezone?: string;
  /** Conditional. Format: 1-2048. Exact user-agent header. Mandatory for 3D Secure v2. */
  userAgent?: string;
  /** Conditional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Mandatory for 3D Secure v2. */
  javaEnabled?: boolean;
  /** Optional. Format: N 1-2. Bits per pixel. */
  screenColorDepth?: string | number;
  /** Optional. Format: N1. Size of the challenge window, 1 (01) to 5 (05). */
  challengeWindow?: string;
  /** Optional. Format: AN 1-32. */
  deviceId?: string;
}

export interface AppParameters {
  /** Optional. Format: AN 1-40. A mobile device. */
  deviceId?: string;
}

export interface CustomerParameters {
  /** Optional. Format: AN 1-255. The shopper's id in your system. */
  merchantCustomerId?: string;
  /** Conditional. Format: AN up to 50. Required when any other customer parameter is sent. */
  givenName?: string;
  /** Optional. Format: AN 2-50. */
  middleName?: string;
  /** Conditional. Format: AN up to 50. Required when any other customer parameter is sent. */
  surname?: string;
  /** Optional. Format: M or F. */
  sex?: "M" | "F";
  /** Optional. Format: date. */
  birthDate?: string;
  /** Optional. Format: up to 25; first char + or digit, then digits, space, dot, parentheses, slash, hyphen. Some risk checks need it. */
  phone?: string;
  /** Optional. Format: same as phone. Some risk checks need it. */
  mobile?: string;
  /** Optional. Format: AN 1-25. Some risk checks need it. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. For risk checks and direct-debit mandates. */
  email?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Conditional. Format: IDCARD, PASSPORT, TAXSTATEMENT. Requires identificationDocId. */
  identificationDocType?: "IDCARD" | "PASSPORT" | "TAXSTATEMENT";
  /** Conditional. Format: AN 8-64. Requires identificationDocType. */
  identificationDocId?: string;
  /** Optional. Format: AN 1-255. */
  ip?: string;
  /** Optional. Format: AN up to 255. The payer's account or a reference for the payee. */
  merchantReference?: string;
  /** Optional. Format: MR, MRS, MS, MX. */
  salutation?: "MR" | "MRS" | "MS" | "MX";
  /** Optional. Format: 2 uppercase letters. */
  language?: string;
  /** Optional. Format: INDIVIDUAL or COMPANY. */
  category?: "INDIVIDUAL" | "COMPANY";
  browserFingerprint?: BrowserFingerprintParameters;
  browser?: BrowserParameters;
  app?: AppParameters;
  /** Optional. Format: NEW or EXISTING. */
  status?: "NEW" | "EXISTING";
}

export interface CustomerBrowserParameters {
  /** Optional. Format: 1-2048. Exact HTTP accept header. Mandatory for 3D Secure v2. */
  acceptHeader?: string;
  /** Optional. Format: 1-8. Language tag (BCP 47). Mandatory for 3D Secure v2. */
  language?: string;
  /** Optional. Format: 1-6. Pixels. Mandatory for 3D Secure v2. */
  screenHeight?: string | number;
  /** Optional. Format: 1-6. Pixels. Mandatory for 3D Secure v2. */
  screenWidth?: string | number;
  /** Optional. Format: 1-5. Minutes between UTC and local time, negative when ahead. Mandatory for 3D Secure v2. */
  timezone?: string;
  /** Optional. Format: 1-2048. Exact user-agent header. Mandatory for 3D Secure v2. */
  userAgent?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Mandatory for 3D Secure v2. */
  javaEnabled?: boolean;
  /** Optional. Format: N 1-2. Bits per pixel. */
  screenColorDepth?: string | number;
  /** Optional. Format: N1. Size of the challenge window, 1 (01) to 5 (05). */
  challengeWindow?: string;
}

export interface ShippingCustomerParameters {
  /** Optional. Format: AN 1-255. The shopper's id in your system. */
  merchantCustomerId?: string;
  /** Optional. Format: AN up to 50. Required when any other customer parameter is sent. */
  givenName?: string;
  /** Optional. Format: AN 2-50. */
  middleName?: string;
  /** Optional. Format: AN up to 50. Required when any other customer parameter is sent. */
  surname?: string;
  /** Optional. Format: M or F. */
  sex?: "M" | "F";
  /** Optional. Format: date. */
  birthDate?: string;
  /** Optional. Format: up to 25; first char + or digit, then digits, space, dot, parentheses, slash, hyphen. Some risk checks need it. */
  phone?: string;
  /** Optional. Format: same as phone. Some risk checks need it. */
  mobile?: string;
  /** Optional. Format: AN 1-25. Some risk checks need it. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. For risk checks and direct-debit mandates. */
  email?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: IDCARD, PASSPORT, TAXSTATEMENT. Requires identificationDocId. */
  identificationDocType?: "IDCARD" | "PASSPORT" | "TAXSTATEMENT";
  /** Optional. Format: AN 8-64. Requires identificationDocType. */
  identificationDocId?: string;
  /** Optional. Format: AN 1-255. */
  ip?: string;
  /** Optional. Format: AN up to 255. The payer's account or a reference for the payee. */
  merchantReference?: string;
  /** Optional. Format: MR, MRS, MS, MX. */
  salutation?: "MR" | "MRS" | "MS" | "MX";
  /** Optional. Format: 2 uppercase letters. */
  language?: string;
  /** Optional. Format: INDIVIDUAL or COMPANY. */
  category?: "INDIVIDUAL" | "COMPANY";
  browser?: CustomerBrowserParameters;
  /** Optional. Format: NEW or EXISTING. */
  status?: "NEW" | "EXISTING";
}

export interface ShippingParameters {
  customer?: ShippingCustomerParameters;
  /** Conditional. Format: AN 1-100. */
  street1?: string;
  /** Conditional. Format: AN 1-100. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Conditional. Format: letters 1-80. */
  city?: string;
  /** Conditional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Conditional. Format: letters and digits, 1-16. */
  postcode?: string;
  /** Conditional. Format: A2 letters, ISO 3166-1. */
  country?: string;
  /** Conditional. Format: 5-30 uppercase letters and underscore. */
  method?: "CARRIER_DESIGNATED_BY_CUSTOMER" | "ELECTRONIC_DELIVERY" | "EXPEDITED" | "GROUND" | "INTERNATIONAL" | "LOWEST_COST" | "MILITARY" | "NEXT_DAY_OVERNIGHT" | "OTHER" | "POINT_PICKUP" | "PUDO" | "SAME_DAY_SERVICE" | "STORE_PICKUP" | "THREE_DAY_SERVICE" | "TWO_DAY_SERVICE";
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. Total shipping cost. */
  cost?: string;
  /** Conditional. Format: AN 1-160. */
  comment?: string;
  /** Optional. Format: date. Expected delivery. */
  expectedDate?: string;
  /** Optional. Format: AN 1-255. */
  logisticsProvider?: string;
  /** Optional. Format: AN 1-255. */
  trackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  returnTrackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  normalized?: string;
  /** Optional. Format: AN 1-255. */
  validationStatus?: string;
  /** Optional. Format: AN 1-100. The warehouse that delivers. */
  warehouse?: string;
  /** Optional. Format: GET_FROM_FILE, NO_SHIPPING, SET_PROVIDED_ADDRESS. */
  preference?: "GET_FROM_FILE" | "NO_SHIPPING" | "SET_PROVIDED_ADDRESS";
  /** Optional. Format: AN. */
  middleName?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  phone?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  mobile?: string;
  /** Optional. Format: AN 1-25. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. */
  email?: string;
  /** Optional. Format: RETURN or SHIPMENT. */
  type?: "RETURN" | "SHIPMENT";
}

export interface BillingParameters {
  /** Conditional. Format: AN 1-100. Mandatory for 3D Secure v2. */
  street1?: string;
  /** Conditional. Format: AN 1-100. street1 plus street2 must not consist of digits only. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Conditional. Format: AN 1-80. Mandatory for 3D Secure v2. */
  city?: string;
  /** Conditional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Conditional. Format: letters and digits, 1-16. Mandatory for 3D Secure v2. */
  postcode?: string;
  /** Conditional. Format: A2 uppercase, ISO 3166-1. Mandatory for 3D Secure v2. */
  country?: string;
  /** Optional. Format: AN 1-255. The normalized address. */
  normalized?: string;
  /** Optional. Format: AN 1-255. Whether the consumer confirmed the normalized form. */
  validationStatus?: string;
}

export interface MerchantBillingParameters {
  /** Optional. Format: AN 1-100. Mandatory for 3D Secure v2. */
  street1?: string;
  /** Optional. Format: AN 1-100. street1 plus street2 must not consist of digits only. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Optional. Format: AN 1-80. Mandatory for 3D Secure v2. */
  city?: string;
  /** Optional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Optional. Format: letters and digits, 1-16. Mandatory for 3D Secure v2. */
  postcode?: string;
  /** Optional. Format: A2 uppercase, ISO 3166-1. Mandatory for 3D Secure v2. */
  country?: string;
  /** Optional. Format: AN 1-255. The normalized address. */
  normalized?: string;
  /** Optional. Format: AN 1-255. Whether the consumer confirmed the normalized form. */
  validationStatus?: string;
  /** Optional. Format: AN. */
  givenName?: string;
  /** Optional. Format: AN. */
  surname?: string;
  /** Optional. Format: AN. */
  middleName?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: AN 1-25. */
  phone?: string;
  /** Optional. Format: AN 1-25. */
  workPhone?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  mobile?: string;
  /** Optional. Format: AN 6-128. */
  email?: string;
}

export interface MerchantShippingParameters {
  /** Optional. Format: AN 1-100. */
  street1?: string;
  /** Optional. Format: AN 1-100. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Optional. Format: letters 1-80. */
  city?: string;
  /** Optional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Optional. Format: letters and digits, 1-16. */
  postcode?: string;
  /** Optional. Format: A2 letters, ISO 3166-1. */
  country?: string;
  /** Optional. Format: 5-30 uppercase letters and underscore. */
  method?: "CARRIER_DESIGNATED_BY_CUSTOMER" | "ELECTRONIC_DELIVERY" | "EXPEDITED" | "GROUND" | "INTERNATIONAL" | "LOWEST_COST" | "MILITARY" | "NEXT_DAY_OVERNIGHT" | "OTHER" | "POINT_PICKUP" | "PUDO" | "SAME_DAY_SERVICE" | "STORE_PICKUP" | "THREE_DAY_SERVICE" | "TWO_DAY_SERVICE";
  /** Optional. Format: 1-10 integer digits, dot, 2 decimals. Total shipping cost. */
  cost?: string;
  /** Optional. Format: AN 1-160. */
  comment?: string;
  /** Optional. Format: date. Expected delivery. */
  expectedDate?: string;
  /** Optional. Format: AN 1-255. */
  logisticsProvider?: string;
  /** Optional. Format: AN 1-255. */
  trackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  returnTrackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  normalized?: string;
  /** Optional. Format: AN 1-255. */
  validationStatus?: string;
  /** Optional. Format: AN 1-100. The warehouse that delivers. */
  warehouse?: string;
  /** Optional. Format: GET_FROM_FILE, NO_SHIPPING, SET_PROVIDED_ADDRESS. */
  preference?: "GET_FROM_FILE" | "NO_SHIPPING" | "SET_PROVIDED_ADDRESS";
  /** Optional. Format: AN. */
  middleName?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  phone?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  mobile?: string;
  /** Optional. Format: AN 1-25. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. */
  email?: string;
  /** Optional. Format: RETURN or SHIPMENT. */
  type?: "RETURN" | "SHIPMENT";
}

export interface MerchantAppParameters {
  /** Optional. Format: AN 1-255. Custom URL scheme that opens the merchant's app. */
  schemeUrl?: string;
}

export interface MerchantParameters {
  billing?: MerchantBillingParameters;
  shipping?: MerchantShippingParameters;
  /** Optional. Format: AN 1-100. Overrides the name; usually the statement's first line. */
  name?: string;
  /** Optional. Format: AN up to 4. Merchant category code. */
  mcc?: string;
  /** Optional. Format: AN 1-100. */
  street?: string;
  /** Optional. Format: AN 1-100. Usually the statement's second line: a city, or a phone, e-mail or URL the shopper knows. */
  city?: string;
  /** Optional. Format: letters and digits, 1-50. */
  state?: string;
  /** Optional. Format: N3. ISO 3166-1 numeric. */
  countryCode?: string;
  /** Optional. Format: A2. ISO 3166-1 alpha-2. */
  country?: string;
  /** Optional. Format: letters, digits, hyphen, 1-16. */
  postcode?: string;
  /** Optional. Format: up to 20. latitude,longitude */
  geographicCoordinates?: string;
  /** Optional. Format: AN 1-100. Where the service was received, if elsewhere. */
  serviceLocationCity?: string;
  /** Optional. Format: letters and digits, 1-50. */
  serviceLocationState?: string;
  /** Optional. Format: up to 3. */
  serviceLocationCountryCode?: string;
  /** Optional. Format: letters, digits, hyphen, 1-16. */
  serviceLocationPostCode?: string;
  /** Optional. Format: up to 20. */
  serviceLocationGeographicCoordinates?: string;
  /** Optional. Format: AN 1-255. */
  additionalContact?: string;
  /** Optional. Format: up to 25 of letters, digits, plus, hyphen, dot. */
  phone?: string;
  /** Optional. Format: same format. Customer-service phone. */
  customerContactPhone?: string;
  /** Optional. Format: AN up to 255. A random id, unique to the transaction. */
  websiteId?: string;
  /** Optional. Format: AN 1-255. */
  url?: string;
  /** Optional. Format: AN 1-60. Partnership agreement code. */
  partnerIdCode?: string;
  /** Optional. Format: AN 1-255. Independent sales organisation. */
  isoId?: string;
  /** Optional. Format: AN 1-255. Payment facilitator. */
  payFacId?: string;
  /** Optional. Format: AN 1-255. Payment facilitator. */
  payFacName?: string;
  /** Optional. Format: AN 1-100. Only for one card network's payment facilitators. */
  submerchantId?: string;
  /** Optional. Format: AN 1-255. */
  marketplaceId?: string;
  /** Optional. Format: AN 1-60. */
  taxId?: string;
  data?: Record<string, string>;
  /** Optional. Format: AN 1-25. */
  foreignRetailIndicator?: string;
  /** Optional. Format: AN 1-100. */
  legalName?: string;
  app?: MerchantAppParameters;
}

export interface CorporateParameters {
  /** Optional. Format: AN 1-30. */
  name?: string;
  /** Optional. Format: AN 1-160. */
  description?: string;
  /** Optional. Format: AN 1-100. */
  street?: string;
  /** Optional. Format: AN 1-100 (address line 2). */
  address?: string;
  /** Optional. Format: AN 1-80. */
  city?: string;
  /** Optional. Format: AN 1-50. */
  state?: string;
  /** Optional. Format: AN 1-16. */
  postCode?: string;
  /** Optional. Format: AN 1-30. */
  suite?: string;
  /** Optional. Format: AN 1-15. */
  postboxNumber?: string;
  /** Optional. Format: Y or N (purchase indicator). */
  purchase?: "Y" | "N";
  /** Optional. Format: N 1-25. */
  phone?: string | number;
  /** Optional. Format: N 1-25. */
  fax?: string | number;
  /** Optional. Format: AN up to 255. May be empty. */
  vatId?: string;
}

export interface SenderParameters {
  /** Optional. Format: letters, digits, whitespace, up to 100. */
  name?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  givenName?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  middleName?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  surname?: string;
  /** Optional. Format: date yyyy-MM-dd. */
  birthDate?: string;
  /** Optional. Format: AN up to 32. */
  accountNumber?: string;
  /** Optional. Format: AN up to 100. */
  street?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  city?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  state?: string;
  /** Optional. Format: 3 chars, ISO 3166-1 alpha-3. */
  country?: string;
  /** Optional. Format: AN 1-30. */
  postcode?: string;
  /** Optional. Format: OTHER, RTN_AND_BANK_ACCOUNT, IBAN, IBAN_AND_BIC, CARD_ACCOUNT. */
  accountNumberType?: "OTHER" | "RTN_AND_BANK_ACCOUNT" | "IBAN" | "IBAN_AND_BIC" | "CARD_ACCOUNT";
  /** Optional. Format: N2: 01 credit, 02 debit, 03 prepaid, 04 cash, 05 debit or deposit-access accounts other than those linked to the cardholder's scheme, 06 credit accounts other than those linked to the scheme, 07 deposit account, 08 mobile money account, 09 other. */
  sourceOfFunds?: "01" | "02" | "03" | "04" | "05" | "06" | "07" | "08" | "09";
  /** Optional. Format: letters, digits, whitespace, up to 50 (for example individual or business). */
  entityType?: string;
  /** Optional. Format: letters and whitespace, up to 50. */
  nationality?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  occupation?: string;
  /** Optional. Format: up to 3 letters (alpha-3). */
  birthCountry?: string;
}

export interface RecipientParameters {
  /** Optional. Format: letters, digits, whitespace, up to 48. */
  givenName?: string;
  /** Optional. Format: letters, digits, whitespace, up to 48. */
  middleName?: string;
  /** Optional. Format: letters, digits, whitespace, up to 48. */
  surname?: string;
  /** Optional. Format: date yyyy-MM-dd. */
  birthDate?: string;
  /** Optional. Format: starts with + or digit; digits, space, parentheses, dot, hyphen; up to 25. */
  phone?: string;
  /** Optional. Format: AN up to 32. */
  accountNumber?: string;
  /** Optional. Format: AN up to 100. */
  street?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  city?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  state?: string;
  /** Optional. Format: 3 chars, ISO 3166-1 alpha-3. */
  country?: string;
  /** Optional. Format: AN 1-30. */
  postcode?: string;
  /** Optional. Format: OTHER, RTN_AND_BANK_ACCOUNT, IBAN, PHONE_NUMBER, BAN_AND_BIC, WALLET_ID, SOCIAL_NETWORK_ID. */
  accountNumberType?: "OTHER" | "RTN_AND_BANK_ACCOUNT" | "IBAN" | "PHONE_NUMBER" | "BAN_AND_BIC" | "WALLET_ID" | "SOCIAL_NETWORK_ID" | "IBAN_AND_BIC";
  /** Optional. Format: letters and whitespace, up to 50. */
  nationality?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  identificationType?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  identificationValue?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  entityType?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  relationship?: string;
  /** Optional. Format: letters, digits, whitespace, up to 50. */
  occupation?: string;
  /** Optional. Format: up to 3 letters (alpha-3). */
  birthCountry?: string;
}

export interface ItemsRecipientParameters {
  /** Optional. Format: AN 1-5. */
  salutation?: string;
  /** Optional. Format: AN 1-48. */
  firstName?: string;
  /** Optional. Format: AN 1-48. */
  lastName?: string;
  /** Optional. Format: AN 1-50. */
  middleName?: string;
  /** Optional. Format: AN 1-100. */
  apartment?: string;
  /** Optional. Format: AN 1-100. Address line 1. */
  street?: string;
  /** Optional. Format: AN 1-100. Address line 2. */
  address?: string;
  /** Optional. Format: AN 1-80. */
  city?: string;
  /** Optional. Format: AN 1-50. */
  state?: string;
  /** Optional. Format: AN 1-16. */
  postcode?: string;
  /** Optional. Format: 2 letters or 3 digits. */
  country?: string;
  /** Optional. Format: N 1-25. */
  phone?: string | number;
  /** Optional. Format: AN 1-128. */
  email?: string;
}

export interface ItemsParameters {
  /** Conditional. Format: AN 1-255. */
  name?: string;
  /** Conditional. Format: AN 1-255. Unique item id. */
  merchantItemId?: string;
  /** Conditional. Format: up to 12 digits, optional dot and up to 3 decimals. */
  quantity?: string;
  /** Conditional. Format: AN 1-255. */
  type?: "PHYSICAL" | "DIGITAL" | "MIXED" | "ANONYMOUS_DONATION" | "AUTHORITIES_PAYMENT";
  /** Optional. Format: AN 1-255. */
  sku?: string;
  /** Conditional. Format: A3 ISO 4217. */
  currency?: string;
  /** Conditional. Format: AN 1-2048. */
  description?: string;
  /** Optional. Format: N8. Commodity code of the product (L3). */
  commodityCode?: string | number;
  /** Optional. Format: AN up to 50. L3. */
  commodityDescription?: string;
  /** Optional. Format: AN 1-255. Per unit, without tax and discount. */
  originalPrice?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. Per unit, with tax and discount. */
  price?: string;
  /** Conditional. Format: same decimal form. For the whole quantity. */
  totalAmount?: string;
  /** Conditional. Format: same decimal form. Per unit. */
  taxAmount?: string;
  /** Conditional. Format: same decimal form. */
  totalTaxAmount?: string;
  /** Conditional. Format: up to 6 chars, percentage 0 to 100 with up to two decimals. */
  tax?: string;
  /** Conditional. Format: AN2: AA, S, E or Z. Mandatory L3 tax category. */
  taxCategory?: "AA" | "S" | "E" | "Z";
  /** Conditional. Format: same decimal form. Shipping amount of the item. */
  shipping?: string;
  /** Conditional. Format: same decimal form. */
  discount?: string;
  /** Optional. Format: AN 1-255. */
  giftMessage?: string;
  /** Optional. Format: AN 1-255. */
  shippingMethod?: string;
  /** Optional. Format: AN 1-255. */
  shippingInstructions?: string;
  /** Optional. Format: AN 1-255. */
  shippingTrackingNumber?: string;
  /** Optional. Format: M, CM, KG, G, COUNT. Default: COUNT. */
  quantityUnit?: "M" | "CM" | "KG" | "G" | "COUNT";
  /** Optional. Format: valid URL. */
  productUrl?: string;
  /** Optional. Format: valid URL. */
  imageUrl?: string;
  /** Optional. Format: same decimal form. What the discount percentage comes to. */
  totalDiscountAmount?: string;
  /** Optional. Format: AN 1-30. Your product code. */
  productCode?: string;
  /** Optional. Format: AN 1-30. The manufacturer's part number. */
  partNumber?: string;
  /** Optional. Format: N3, 1 to 999. Line number on the invoice. */
  itemNumber?: string | number;
  /** Optional. Format: AN 1-30. */
  vatReferenceNumber?: string;
  /** Optional. Format: AN 1-255. The marketplace seller who owns the item. */
  sellerId?: string;
  recipient?: ItemsRecipientParameters;
  /** Optional. Format: date. */
  deliveryDate?: string;
}

export interface PaymentsParameters {
  /** Optional. Format: AN 1-255. Name of the payment method. */
  name?: string;
  /** Optional. Format: AN 1-255. */
  type?: "GIFTCARD" | "PROMOTION";
  /** Optional. Format: 1-10 integer digits, dot, 2 decimals. */
  amount?: string;
  /** Optional. Format: 3 letters. */
  currency?: string;
  /** Optional. Format: AN 1-255. */
  status?: "pending" | "authorized" | "captured";
  /** Optional. Format: AN 1-255. */
  brand?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. The cart's primary payment method; one at most. */
  primary?: boolean;
}

export interface CartParameters {
  items?: ItemsParameters[];
  payments?: PaymentsParameters[];
}

export interface SellersParameters {
  /** Optional. Format: AN 1-255. Items of this seller carry it as their sellerId. */
  id?: string;
  /** Optional. Format: 1-10 integer digits, dot, 2 decimals. */
  amount?: string;
}

export interface MarketPlaceParameters {
  sellers?: SellersParameters[];
}

export interface LegsParameters {
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  taxAmount?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  feesAmount?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  fareAmount?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  departureTaxAmount?: string;
  /** Conditional. Format: date. */
  departureDate?: string;
  /** Conditional. Format: date. */
  arrivalDate?: string;
  /** Conditional. Format: AN 1-255. */
  ticketNumber?: string;
  /** Conditional. Format: AN 1-255. */
  stopOverAllowed?: string;
  /** Conditional. Format: AN 1-255. */
  restrictions?: string;
  /** Conditional. Format: AN 1-255. */
  flightNumber?: string;
  /** Conditional. Format: AN 1-255. */
  fareBasis?: string;
  /** Conditional. Format: AN 1-255. */
  exchangeTicketNum?: string;
  /** Conditional. Format: AN 1-255. */
  departureCountry?: string;
  /** Conditional. Format: AN 1-255. */
  departureAirport?: string;
  /** Conditional. Format: AN 1-255. */
  airlineName?: string;
  /** Conditional. Format: AN 1-255. */
  airlineCode?: string;
  /** Conditional. Format: AN 1-255. */
  departureTime?: string;
  /** Conditional. Format: AN 1-255. */
  arrivalCountry?: string;
  /** Conditional. Format: AN 1-255. */
  arrivalAirport?: string;
  /** Conditional. Format: AN 1-255. */
  arrivalTime?: string;
  /** Conditional. Format: AN 1-255. */
  couponNumber?: string;
  /** Conditional. Format: AN 1-255. */
  classOfService?: string;
  /** Conditional. Format: AN 1-255. */
  carrierCode?: string;
  /** Conditional. Format: AN 1-10, days. Days. */
  timeToDeparture?: string;
}

export interface PassengersParameters {
  /** Conditional. Format: AN 1-255. */
  type?: string;
  /** Conditional. Format: AN 1-255. */
  name?: string;
  /** Conditional. Format: AN 1-255. */
  ticketRestricted?: string;
  /** Conditional. Format: AN 1-255. */
  ticketNumber?: string;
  /** Conditional. Format: AN 1-255. */
  status?: string;
  /** Conditional. Format: AN 1-255. */
  phone?: string;
  /** Conditional. Format: AN 1-255. */
  frequentFlyerNumber?: string;
  /** Conditional. Format: AN 1-255. */
  email?: string;
  /** Conditional. Format: AN 1-255. */
  dob?: string;
  /** Conditional. Format: AN 1-255. */
  checkDigit?: string;
  /** Conditional. Format: A2, ISO 3166-1. */
  residenceCountry?: string;
  legs?: LegsParameters[];
}

export interface AirlineParameters {
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  totalTaxAmount?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  totalFeesAmount?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. */
  totalFareAmount?: string;
  /** Conditional. Format: date. */
  ticketIssueDate?: string;
  /** Conditional. Format: AN 1-255. */
  ticketIssueAddress?: string;
  /** Conditional. Format: AN 1-255. */
  thirdPartyBooking?: string;
  /** Conditional. Format: AN 1-255. Written with a small t. */
  bookingtype?: string;
  /** Conditional. Format: AN 1-255. */
  ticketDeliveryMethod?: string;
  /** Conditional. Format: AN 1-255. */
  bookingRefNum?: string;
  /** Conditional. Format: AN 1-255. */
  agentName?: string;
  /** Conditional. Format: AN 1-255. */
  agentCode?: string;
  passengers?: PassengersParameters[];
}

export interface RecurringMigrationParameters {
  /** Required. Format: A2, one of DB, CD, PA. */
  paymentType?: "DB" | "CD" | "PA";
  /** Optional. Format: up to 8 integer digits, optional dot and 2 decimals. */
  amount?: string;
  /** Conditional. Format: yyyy-MM-dd HH:mm:ss of the initial request. */
  requestTimestamp?: string;
  /** Conditional. Format: AN 1-128, initial response details from the acquirer. */
  connectorTxId1?: string;
  /** Conditional. Format: AN 1-128, initial response details from the acquirer. */
  connectorTxId2?: string;
  /** Conditional. Format: AN 1-128, initial response details from the acquirer. */
  connectorTxId3?: string;
}

export interface ThreeDSecureMerchantParameters {
  /** Optional. Format: AN up to 100. As the scheme's directory server knows it. */
  name?: string;
  /** Optional. Format: AN up to 2048. */
  url?: string;
  /** Optional. Format: 3 letters. */
  country?: string;
}

export interface VisaParameters {
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorId?: string;
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorName?: string;
}

export interface MastercardParameters {
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorId?: string;
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorName?: string;
}

export interface AmexParameters {
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorId?: string;
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorName?: string;
}

export interface DinersParameters {
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorId?: string;
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorName?: string;
}

export interface JcbParameters {
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorId?: string;
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorName?: string;
}

export interface CbParameters {
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorId?: string;
  /** Optional. Format: AN up to 100. Assigned by the card network. */
  requestorName?: string;
}

export interface V2Parameters {
  visa?: VisaParameters;
  mastercard?: MastercardParameters;
  amex?: AmexParameters;
  diners?: DinersParameters;
  jcb?: JcbParameters;
  cb?: CbParameters;
}

export interface ThreeDSecureParameters {
  /** Optional. Format: up to 9 integer digits, dot, 2 decimals. The amount to authenticate; risk.amount goes before it. */
  amount?: string;
  /** Optional. Format: A3 ISO 4217. */
  currency?: string;
  /** Conditional. Format: as returned by the mobile SDK in authRequestParams (encrypted). Required to start the app-based v2 flow. */
  deviceInfo?: string;
  merchant?: ThreeDSecureMerchantParameters;
  v2?: V2Parameters;
  /** Optional. Format: N2, 01 to 99. Only marks a requestor-initiated (3RI) request, 3DS 2.2, one network. */
  channel?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Non-payment authentication. */
  npa?: boolean;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Decoupled authentication. */
  decoupled?: boolean;
  /** Optional. Format: RECURRING, SPLIT_SHIPMENT, DELAYED_SHIPMENT. Type of 3RI transaction. */
  threeRIInd?: "RECURRING" | "SPLIT_SHIPMENT" | "DELAYED_SHIPMENT";
  /** Optional. Format: PAYMENT, RECURRING, INSTALLMENT, ADD_CARD, MAINTAIN_CARD, EMV_ID, BILLING_AGREEMENT, SPLIT_SHIPMENT, _DELAYED_SHIPMENT, SPLIT_PAYMENT. DELAYED_SHIPMENT is taken, too. A hint to the access control server. */
  authenticationInd?: "PAYMENT" | "RECURRING" | "INSTALLMENT" | "ADD_CARD" | "MAINTAIN_CARD" | "EMV_ID" | "BILLING_AGREEMENT" | "SPLIT_SHIPMENT" | "_DELAYED_SHIPMENT" | "SPLIT_PAYMENT";
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true bypasses 3D Secure; false does not turn it on. */
  disable?: boolean;
  /** Conditional. Format: N2, 01 to 08. */
  eci?: string;
  /** Conditional. Format: 28 chars (CAVV or AAV). */
  verificationId?: string;
  /** Conditional. Format: one of Y, A, U, N. I is taken, too: the issuer accepted an exemption, or data were only shared. */
  authenticationStatus?: "Y" | "A" | "U" | "N" | "I";
  /** Optional. Format: 36 chars. The directory server's id. */
  dsTransactionId?: string;
  /** Optional. Format: 36 chars. The access control server's id. */
  acsTransactionId?: string;
  /** Optional. Format: Y or N. */
  challengeMandatedIndicator?: "Y" | "N";
  /** Optional. Format: form 1.x.y or 2.x.y, for example 2.1.0 or 2.2.0. */
  version?: string;
  /** Optional. Format: 01 to 04. */
  authType?: string;
  /** Optional. Format: N2. */
  transactionStatusReason?: string | number;
  /** Optional. Format: 01 to 09. 3D Secure 2.2 or higher. */
  challengeIndicator?: string;
  /** Optional. Format: N2, 01 to 04. 3D Secure 2.2 or higher; needs challengeIndicator. */
  exemptionFlag?: string;
  schemeData?: Record<string, string>;
}

export interface GiftCardParameters {
  /** Optional. Format: AN 2-255. */
  number?: string;
  /** Optional. Format: AN 2-255. */
  pin?: string;
  /** Optional. Format: AN 2-255. */
  holder?: string;
  /** Optional. Format: AN 2-160. */
  message?: string;
  /** Optional. Format: AN up to 16. The occasion. */
  type?: "ANNIVERSARY" | "BIRTHDAY" | "CONGRATULATIONS" | "APRIL_FOOLS_DAY" | "EASTER" | "FATHERS_DAY" | "GRADUATION" | "HOLIDAY" | "SEASONS_GREETINGS" | "PASSOVER" | "KWANZAA" | "HALLOWEEN" | "MOTHERS_DAY" | "NEW_YEARS_DAY" | "BOSSES_DAY" | "ST_PATRICKS_DAY" | "SWEETEST_DAY" | "CHRISTMAS" | "BABY_SHOWER" | "THANKSGIVING" | "OTHER" | "VALENTINES_DAY" | "WEDDING" | "SECRETARYS_DAY" | "CHINESE_NEW_YEAR" | "HANUKKAH" | "CELEBRATE_FALL" | "GRANDPARENTS_DAY" | "INDEPENDENCE_DAY";
}

export interface RiskParameters {
  /** Optional. Format: AN 1-255. Selects another rule set; 12 characters for one provider. */
  channelId?: string;
  /** Optional. Format: AN 1-255. Service of the risk system; 1 character for one provider. */
  serviceId?: string;
  /** Optional. Format: 1-10 integer digits, dot, 2 decimals. For risk and, when present, the 3D Secure amount. */
  amount?: string;
  /** Optional. Format: yyyy-MM-dd HH:mm:ss, 24-hour. When the payment ran, if not now. */
  orderTimestamp?: string;
  /** Optional. Format: AN 1-255. Overrides paymentBrand for risk. */
  brand?: string;
  parameters?: Record<string, string>;
  /** Optional. Format: AN 1-60. */
  merchantWebsite?: string;
  /** Optional. Format: AN 1-64. Set by the merchant. */
  accountToken?: string;
}

export interface JobParameters {
  /** Optional. Format: AN 1-64. */
  name?: string;
  /** Optional. Format: empty, 1970-2099, and the symbols , - * /. Default: *. */
  year?: string;
  /** Optional. Format: 1-12 and , - * /. Default: 1. */
  month?: string;
  /** Optional. Format: 1-31 and , - * ? / L W. Default: 1. */
  dayOfMonth?: string;
  /** Optional. Format: 1-7 or SUN-SAT and , - * ? / L #. Default: 1. 1 = SUN. */
  dayOfWeek?: string;
  /** Optional. Format: 0-23 and , - * /. Default: 0. */
  hour?: string;
  /** Optional. Format: 0-59. Default: 0. */
  minute?: string;
  /** Optional. Format: 0-59 and , - * /. Default: 0. */
  second?: string;
  /** Optional. Format: yyyy-MM-dd HH:mm:ss. */
  startDate?: string;
  /** Optional. Format: yyyy-MM-dd HH:mm:ss. */
  endDate?: string;
  /** Optional. Format: YEAR, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND. */
  noticeUnit?: "YEAR" | "MONTH" | "WEEK" | "DAY" | "HOUR" | "MINUTE" | "SECOND";
  /** Optional. Format: N up to 16. */
  noticeNumber?: string | number;
  /** Optional. Format: ANYTIME or DURATION_END. */
  noticeCallable?: "ANYTIME" | "DURATION_END";
  /** Optional. Format: YEAR, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND. */
  durationUnit?: "YEAR" | "MONTH" | "WEEK" | "DAY" | "HOUR" | "MINUTE" | "SECOND";
  /** Optional. Format: N up to 16. */
  durationNumber?: string | number;
  /** Optional. Format: AN up to 256; cron expression of seven fields (year may be left out). Overwrites second, minute, hour, dayOfMonth, month, dayOfWeek, year. */
  expression?: string;
}

export interface StandingInstructionParameters {
  /** Conditional. Format: UNSCHEDULED, INSTALLMENT, RECURRING. Category of the transaction. */
  type?: "UNSCHEDULED" | "INSTALLMENT" | "RECURRING";
  /** Conditional. Format: STANDING_ORDER, SUBSCRIPTION. Kind of recurring agreement. */
  recurringType?: "STANDING_ORDER" | "SUBSCRIPTION";
  /** Conditional. Format: INITIAL, REPEATED. */
  mode?: "INITIAL" | "REPEATED";
  /** Conditional. Format: CIT, MIT. Who initiates: the customer or the merchant. */
  source?: "CIT" | "MIT";
  /** Conditional. Format: AN or N, no fixed format. The scheme's reference, returned with the customer-initiated transaction. */
  initialTransactionId?: string;
  /** Conditional. Format: INCREMENTAL_AUTH, RESUBMISSION, REAUTHORIZATION, DELAYED_CHARGES, NO_SHOW. A follow-up that business practice allows. */
  industryPractice?: "INCREMENTAL_AUTH" | "RESUBMISSION" | "REAUTHORIZATION" | "DELAYED_CHARGES" | "NO_SHOW";
  /** Conditional. Format: yyyy-mm-dd. No authorizations after this date. */
  expiry?: string;
  /** Conditional. Format: N4. Minimum days between authorizations. */
  frequency?: string | number;
  /** Conditional. Format: N3. Most authorizations; mandatory for 3D Secure with type INSTALLMENT. */
  numberOfInstallments?: string | number;
  /** Optional. Format: AN35, optional. One network's link between transactions of the same agreement. */
  agreementId?: string;
}

export interface PaymentRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Required. Format: A3 uppercase, ISO 4217. */
  currency: string;
  /** Conditional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Required. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the widget script's integrity hash. */
  integrity?: boolean;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN. FINAL marks the last transaction of a chain. */
  sequence?: string;
  /** Optional. Format: N2, 1 to 98. The most partial captures there may be. */
  numberOfCaptures?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: AN32. The earlier payment, instead of its id in the path. With REAUTHORIZATION and INCREMENTAL_AUTH. */
  referenceUuid?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  forex?: ForexParameters;
  card?: CardParameters;
  wallet1?: Wallet1Parameters;
  wallet2?: Wallet2Parameters;
  wallet3?: Wallet3Parameters;
  virtualAccount?: VirtualAccountParameters;
  bankAccount?: BankAccountParameters;
  /** Conditional. Format: date. When the direct debit is due. Left out of risk checks. */
  transactionDueDate?: string;
  tokenAccount?: TokenAccountParameters;
  customer?: CustomerParameters;
  shipping?: ShippingParameters;
  billing?: BillingParameters;
  merchant?: MerchantParameters;
  corporate?: CorporateParameters;
  sender?: SenderParameters;
  recipient?: RecipientParameters;
  cart?: CartParameters;
  marketPlace?: MarketPlaceParameters;
  airline?: AirlineParameters;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true stores the payment data; the answer carries registration.id. */
  createRegistration?: boolean;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Lets the sent holder replace an empty one of the registration, for this payment only. */
  overrideHolder?: boolean;
  recurringMigration?: RecurringMigrationParameters;
  threeDSecure?: ThreeDSecureParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  giftCard?: GiftCardParameters;
  risk?: RiskParameters;
  job?: JobParameters;
  standingInstruction?: StandingInstructionParameters;
  /** Optional. Format: 000.100.2 followed by two digits. Why the payment was charged back. */
  chargebackResultCode?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. false: the holder wants no updates of the stored card by the card networks' account updater. */
  accountUpdater?: boolean;
}

export interface FollowUpRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount?: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Conditional. Format: A3 uppercase, ISO 4217. */
  currency?: string;
  /** Optional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Required. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the widget script's integrity hash. */
  integrity?: boolean;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN. FINAL marks the last transaction of a chain. */
  sequence?: string;
  /** Optional. Format: N2, 1 to 98. The most partial captures there may be. */
  numberOfCaptures?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: AN32. The earlier payment, instead of its id in the path. With REAUTHORIZATION and INCREMENTAL_AUTH. */
  referenceUuid?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  forex?: ForexParameters;
  /** Conditional. Format: date. When the direct debit is due. Left out of risk checks. */
  transactionDueDate?: string;
  customer?: CustomerParameters;
  shipping?: ShippingParameters;
  billing?: BillingParameters;
  merchant?: MerchantParameters;
  corporate?: CorporateParameters;
  sender?: SenderParameters;
  recipient?: RecipientParameters;
  cart?: CartParameters;
  marketPlace?: MarketPlaceParameters;
  airline?: AirlineParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  risk?: RiskParameters;
  standingInstruction?: StandingInstructionParameters;
  /** Optional. Format: 000.100.2 followed by two digits. Why the payment was charged back. */
  chargebackResultCode?: string;
}

export interface CheckoutRequestCardParameters {
  /** Optional. Format: A 3-128. */
  holder?: string;
}

export interface CheckoutRequestBankAccountParameters {
  /** Required. Format: AN 4-128. */
  holder?: string;
  /** Conditional. Format: AN 1-255. */
  bankName?: string;
  /** Conditional. Format: A2, ISO 3166-1. */
  country?: string;
  mandate?: MandateParameters;
}

export interface CheckoutRequestGiftCardParameters {
  /** Optional. Format: AN 2-255. */
  holder?: string;
  /** Optional. Format: AN 2-160. */
  message?: string;
  /** Optional. Format: AN up to 16. The occasion. */
  type?: "ANNIVERSARY" | "BIRTHDAY" | "CONGRATULATIONS" | "APRIL_FOOLS_DAY" | "EASTER" | "FATHERS_DAY" | "GRADUATION" | "HOLIDAY" | "SEASONS_GREETINGS" | "PASSOVER" | "KWANZAA" | "HALLOWEEN" | "MOTHERS_DAY" | "NEW_YEARS_DAY" | "BOSSES_DAY" | "ST_PATRICKS_DAY" | "SWEETEST_DAY" | "CHRISTMAS" | "BABY_SHOWER" | "THANKSGIVING" | "OTHER" | "VALENTINES_DAY" | "WEDDING" | "SECRETARYS_DAY" | "CHINESE_NEW_YEAR" | "HANUKKAH" | "CELEBRATE_FALL" | "GRANDPARENTS_DAY" | "INDEPENDENCE_DAY";
}

export interface RegistrationsParameters {
  /** Optional. Format: AN 32 letters and digits. A registration of this shopper, shown in the form by brand and last digits. */
  id?: string;
}

export interface CheckoutRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount?: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Conditional. Format: A3 uppercase, ISO 4217. */
  currency?: string;
  /** Optional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Conditional. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the widget script's integrity hash. */
  integrity?: boolean;
  overridePaymentType?: Record<string, string>;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN. FINAL marks the last transaction of a chain. */
  sequence?: string;
  /** Optional. Format: N2, 1 to 98. The most partial captures there may be. */
  numberOfCaptures?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the address of a page of this gateway that has the form. */
  paymentPage?: boolean;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  card?: CheckoutRequestCardParameters;
  bankAccount?: CheckoutRequestBankAccountParameters;
  giftCard?: CheckoutRequestGiftCardParameters;
  forex?: ForexParameters;
  /** Conditional. Format: date. When the direct debit is due. Left out of risk checks. */
  transactionDueDate?: string;
  customer?: CustomerParameters;
  shipping?: ShippingParameters;
  billing?: BillingParameters;
  merchant?: MerchantParameters;
  corporate?: CorporateParameters;
  sender?: SenderParameters;
  recipient?: RecipientParameters;
  cart?: CartParameters;
  marketPlace?: MarketPlaceParameters;
  airline?: AirlineParameters;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true stores the payment data; the answer carries registration.id. */
  createRegistration?: boolean;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Lets the sent holder replace an empty one of the registration, for this payment only. */
  overrideHolder?: boolean;
  recurringMigration?: RecurringMigrationParameters;
  threeDSecure?: ThreeDSecureParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  risk?: RiskParameters;
  job?: JobParameters;
  standingInstruction?: StandingInstructionParameters;
  /** Optional. Format: 000.100.2 followed by two digits. Why the payment was charged back. */
  chargebackResultCode?: string;
  registrations?: RegistrationsParameters[];
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. false: the holder wants no updates of the stored card by the card networks' account updater. */
  accountUpdater?: boolean;
}

export interface UpdateCheckoutRequestCardParameters {
  /** Optional. Format: A 3-128. */
  holder?: string;
}

export interface UpdateCheckoutRequestBankAccountParameters {
  /** Required. Format: AN 4-128. */
  holder?: string;
  /** Conditional. Format: AN 1-255. */
  bankName?: string;
  /** Conditional. Format: A2, ISO 3166-1. */
  country?: string;
  mandate?: MandateParameters;
}

export interface UpdateCheckoutRequestGiftCardParameters {
  /** Optional. Format: AN 2-255. */
  holder?: string;
  /** Optional. Format: AN 2-160. */
  message?: string;
  /** Optional. Format: AN up to 16. The occasion. */
  type?: "ANNIVERSARY" | "BIRTHDAY" | "CONGRATULATIONS" | "APRIL_FOOLS_DAY" | "EASTER" | "FATHERS_DAY" | "GRADUATION" | "HOLIDAY" | "SEASONS_GREETINGS" | "PASSOVER" | "KWANZAA" | "HALLOWEEN" | "MOTHERS_DAY" | "NEW_YEARS_DAY" | "BOSSES_DAY" | "ST_PATRICKS_DAY" | "SWEETEST_DAY" | "CHRISTMAS" | "BABY_SHOWER" | "THANKSGIVING" | "OTHER" | "VALENTINES_DAY" | "WEDDING" | "SECRETARYS_DAY" | "CHINESE_NEW_YEAR" | "HANUKKAH" | "CELEBRATE_FALL" | "GRANDPARENTS_DAY" | "INDEPENDENCE_DAY";
}

export interface UpdateCheckoutRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount?: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Conditional. Format: A3 uppercase, ISO 4217. */
  currency?: string;
  /** Optional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Conditional. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the widget script's integrity hash. */
  integrity?: boolean;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN. FINAL marks the last transaction of a chain. */
  sequence?: string;
  /** Optional. Format: N2, 1 to 98. The most partial captures there may be. */
  numberOfCaptures?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the address of a page of this gateway that has the form. */
  paymentPage?: boolean;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  card?: UpdateCheckoutRequestCardParameters;
  bankAccount?: UpdateCheckoutRequestBankAccountParameters;
  giftCard?: UpdateCheckoutRequestGiftCardParameters;
  forex?: ForexParameters;
  /** Conditional. Format: date. When the direct debit is due. Left out of risk checks. */
  transactionDueDate?: string;
  customer?: CustomerParameters;
  shipping?: ShippingParameters;
  billing?: BillingParameters;
  merchant?: MerchantParameters;
  corporate?: CorporateParameters;
  sender?: SenderParameters;
  recipient?: RecipientParameters;
  cart?: CartParameters;
  marketPlace?: MarketPlaceParameters;
  airline?: AirlineParameters;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true stores the payment data; the answer carries registration.id. */
  createRegistration?: boolean;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Lets the sent holder replace an empty one of the registration, for this payment only. */
  overrideHolder?: boolean;
  recurringMigration?: RecurringMigrationParameters;
  threeDSecure?: ThreeDSecureParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  risk?: RiskParameters;
  job?: JobParameters;
  standingInstruction?: StandingInstructionParameters;
  /** Optional. Format: 000.100.2 followed by two digits. Why the payment was charged back. */
  chargebackResultCode?: string;
  registrations?: RegistrationsParameters[];
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. false: the holder wants no updates of the stored card by the card networks' account updater. */
  accountUpdater?: boolean;
}

export interface PaymentLinksRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: integer 1 to 100. Default: 50. How many a page lists. */
  limit?: string;
  /** Optional. Format: integer 1 to 999999999. Default: 1. Which page, the newest links first. */
  pageNo?: string | number;
}

export interface LinkParameters {
  /** Optional. Format: AN 1-200. What the shopper reads above the amount. */
  description?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true: it is paid several times, by different shoppers. Any other link is paid once. */
  reusable?: boolean;
  /** Optional. Format: integer 1 to 1000000. How often a reusable link is paid at most; without it there is no limit. */
  maxPayments?: string | number;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true: the shopper enters the amount, so none is sent. */
  openAmount?: boolean;
  /** Optional. Format: decimal amount. The least open amount; without it the currency's smallest unit. */
  minAmount?: string;
  /** Conditional. Format: decimal amount. The greatest open amount. Required with link.openAmount=true. */
  maxAmount?: string;
  /** Optional. Format: yyyy-MM-dd HH:mm:ss. Until when it can be paid, UTC by the merchant's clock. */
  expiresAt?: string;
}

export interface PaymentLinkRequestCustomerParameters {
  /** Optional. Format: AN 1-255. The shopper's id in your system. */
  merchantCustomerId?: string;
  /** Conditional. Format: AN up to 50. Required when any other customer parameter is sent. */
  givenName?: string;
  /** Conditional. Format: AN up to 50. Required when any other customer parameter is sent. */
  surname?: string;
  /** Optional. Format: up to 25; first char + or digit, then digits, space, dot, parentheses, slash, hyphen. Some risk checks need it. */
  phone?: string;
  /** Optional. Format: AN 6-128. For risk checks and direct-debit mandates. */
  email?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: NEW or EXISTING. */
  status?: "NEW" | "EXISTING";
}

export interface PaymentLinkRequestShippingParameters {
  /** Conditional. Format: AN 1-100. */
  street1?: string;
  /** Conditional. Format: AN 1-100. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Conditional. Format: letters 1-80. */
  city?: string;
  /** Conditional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Conditional. Format: letters and digits, 1-16. */
  postcode?: string;
  /** Conditional. Format: A2 letters, ISO 3166-1. */
  country?: string;
  /** Conditional. Format: 5-30 uppercase letters and underscore. */
  method?: "CARRIER_DESIGNATED_BY_CUSTOMER" | "ELECTRONIC_DELIVERY" | "EXPEDITED" | "GROUND" | "INTERNATIONAL" | "LOWEST_COST" | "MILITARY" | "NEXT_DAY_OVERNIGHT" | "OTHER" | "POINT_PICKUP" | "PUDO" | "SAME_DAY_SERVICE" | "STORE_PICKUP" | "THREE_DAY_SERVICE" | "TWO_DAY_SERVICE";
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. Total shipping cost. */
  cost?: string;
  /** Conditional. Format: AN 1-160. */
  comment?: string;
  /** Optional. Format: date. Expected delivery. */
  expectedDate?: string;
  /** Optional. Format: AN 1-255. */
  logisticsProvider?: string;
  /** Optional. Format: AN 1-255. */
  trackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  returnTrackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  normalized?: string;
  /** Optional. Format: AN 1-255. */
  validationStatus?: string;
  /** Optional. Format: AN 1-100. The warehouse that delivers. */
  warehouse?: string;
  /** Optional. Format: GET_FROM_FILE, NO_SHIPPING, SET_PROVIDED_ADDRESS. */
  preference?: "GET_FROM_FILE" | "NO_SHIPPING" | "SET_PROVIDED_ADDRESS";
  /** Optional. Format: AN. */
  middleName?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  phone?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  mobile?: string;
  /** Optional. Format: AN 1-25. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. */
  email?: string;
  /** Optional. Format: RETURN or SHIPMENT. */
  type?: "RETURN" | "SHIPMENT";
}

export interface CartItemsParameters {
  /** Conditional. Format: AN 1-255. */
  name?: string;
  /** Conditional. Format: AN 1-255. Unique item id. */
  merchantItemId?: string;
  /** Conditional. Format: up to 12 digits, optional dot and up to 3 decimals. */
  quantity?: string;
  /** Optional. Format: AN 1-255. */
  sku?: string;
  /** Conditional. Format: A3 ISO 4217. */
  currency?: string;
  /** Conditional. Format: AN 1-2048. */
  description?: string;
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. Per unit, with tax and discount. */
  price?: string;
  /** Conditional. Format: same decimal form. For the whole quantity. */
  totalAmount?: string;
  /** Conditional. Format: same decimal form. Per unit. */
  taxAmount?: string;
  /** Conditional. Format: up to 6 chars, percentage 0 to 100 with up to two decimals. */
  tax?: string;
}

export interface PaymentLinkRequestCartParameters {
  items?: CartItemsParameters[];
}

export interface PaymentLinkRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount?: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Required. Format: A3 uppercase, ISO 4217. */
  currency: string;
  /** Required. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType: string;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  link?: LinkParameters;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  customer?: PaymentLinkRequestCustomerParameters;
  billing?: BillingParameters;
  shipping?: PaymentLinkRequestShippingParameters;
  cart?: PaymentLinkRequestCartParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
}

export interface RegistrationRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount?: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Conditional. Format: A3 uppercase, ISO 4217. */
  currency?: string;
  /** Conditional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Conditional. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the widget script's integrity hash. */
  integrity?: boolean;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN. FINAL marks the last transaction of a chain. */
  sequence?: string;
  /** Optional. Format: N2, 1 to 98. The most partial captures there may be. */
  numberOfCaptures?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true stores the payment data; the answer carries registration.id. */
  createRegistration?: boolean;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. false: the holder wants no updates of the stored card by the card networks' account updater. */
  accountUpdater?: boolean;
  forex?: ForexParameters;
  card?: CardParameters;
  virtualAccount?: VirtualAccountParameters;
  bankAccount?: BankAccountParameters;
  /** Conditional. Format: date. When the direct debit is due. Left out of risk checks. */
  transactionDueDate?: string;
  customer?: CustomerParameters;
  shipping?: ShippingParameters;
  billing?: BillingParameters;
  merchant?: MerchantParameters;
  corporate?: CorporateParameters;
  sender?: SenderParameters;
  recipient?: RecipientParameters;
  cart?: CartParameters;
  marketPlace?: MarketPlaceParameters;
  airline?: AirlineParameters;
  recurringMigration?: RecurringMigrationParameters;
  threeDSecure?: ThreeDSecureParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  risk?: RiskParameters;
  standingInstruction?: StandingInstructionParameters;
}

export interface UpdateRegistrationRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  card?: CardParameters;
  bankAccount?: BankAccountParameters;
  virtualAccount?: VirtualAccountParameters;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. false: the holder wants no updates of the stored card by the card networks' account updater. */
  accountUpdater?: boolean;
  customer?: CustomerParameters;
  billing?: BillingParameters;
  customParameters?: Record<string, string>;
}

export interface OneClickRequestCardParameters {
  /** Optional. Format: A 3-128. */
  holder?: string;
  /** Conditional. Format: N 3-4. Asked for on channels that demand it. */
  cvv?: string;
}

export interface OneClickRequestBankAccountParameters {
  /** Required. Format: AN 4-128. */
  holder?: string;
}

export interface OneClickRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Required. Format: A3 uppercase, ISO 4217. */
  currency: string;
  /** Conditional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Required. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. true returns the widget script's integrity hash. */
  integrity?: boolean;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN. FINAL marks the last transaction of a chain. */
  sequence?: string;
  /** Optional. Format: N2, 1 to 98. The most partial captures there may be. */
  numberOfCaptures?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Lets the sent holder replace an empty one of the registration, for this payment only. */
  overrideHolder?: boolean;
  card?: OneClickRequestCardParameters;
  bankAccount?: OneClickRequestBankAccountParameters;
  giftCard?: GiftCardParameters;
  threeDSecure?: ThreeDSecureParameters;
  job?: JobParameters;
  forex?: ForexParameters;
  /** Conditional. Format: date. When the direct debit is due. Left out of risk checks. */
  transactionDueDate?: string;
  customer?: CustomerParameters;
  shipping?: ShippingParameters;
  billing?: BillingParameters;
  merchant?: MerchantParameters;
  corporate?: CorporateParameters;
  sender?: SenderParameters;
  recipient?: RecipientParameters;
  cart?: CartParameters;
  marketPlace?: MarketPlaceParameters;
  airline?: AirlineParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  risk?: RiskParameters;
  standingInstruction?: StandingInstructionParameters;
  /** Optional. Format: 000.100.2 followed by two digits. Why the payment was charged back. */
  chargebackResultCode?: string;
}

export interface ScheduleRequestCustomerParameters {
  /** Optional. Format: AN 1-255. The shopper's id in your system. */
  merchantCustomerId?: string;
  /** Conditional. Format: AN up to 50. Required when any other customer parameter is sent. */
  givenName?: string;
  /** Optional. Format: AN 2-50. */
  middleName?: string;
  /** Conditional. Format: AN up to 50. Required when any other customer parameter is sent. */
  surname?: string;
  /** Optional. Format: M or F. */
  sex?: "M" | "F";
  /** Optional. Format: date. */
  birthDate?: string;
  /** Optional. Format: up to 25; first char + or digit, then digits, space, dot, parentheses, slash, hyphen. Some risk checks need it. */
  phone?: string;
  /** Optional. Format: same as phone. Some risk checks need it. */
  mobile?: string;
  /** Optional. Format: AN 1-25. Some risk checks need it. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. For risk checks and direct-debit mandates. */
  email?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Conditional. Format: IDCARD, PASSPORT, TAXSTATEMENT. Requires identificationDocId. */
  identificationDocType?: "IDCARD" | "PASSPORT" | "TAXSTATEMENT";
  /** Optional. Format: AN 1-255. */
  ip?: string;
  /** Optional. Format: AN up to 255. The payer's account or a reference for the payee. */
  merchantReference?: string;
  /** Optional. Format: MR, MRS, MS, MX. */
  salutation?: "MR" | "MRS" | "MS" | "MX";
  /** Optional. Format: 2 uppercase letters. */
  language?: string;
  /** Optional. Format: INDIVIDUAL or COMPANY. */
  category?: "INDIVIDUAL" | "COMPANY";
  browserFingerprint?: BrowserFingerprintParameters;
  browser?: BrowserParameters;
  app?: AppParameters;
  /** Optional. Format: NEW or EXISTING. */
  status?: "NEW" | "EXISTING";
}

export interface ScheduleRequestShippingParameters {
  /** Conditional. Format: AN 1-100. */
  street1?: string;
  /** Conditional. Format: AN 1-100. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Conditional. Format: letters 1-80. */
  city?: string;
  /** Conditional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Conditional. Format: letters and digits, 1-16. */
  postcode?: string;
  /** Conditional. Format: A2 letters, ISO 3166-1. */
  country?: string;
  /** Conditional. Format: 5-30 uppercase letters and underscore. */
  method?: "CARRIER_DESIGNATED_BY_CUSTOMER" | "ELECTRONIC_DELIVERY" | "EXPEDITED" | "GROUND" | "INTERNATIONAL" | "LOWEST_COST" | "MILITARY" | "NEXT_DAY_OVERNIGHT" | "OTHER" | "POINT_PICKUP" | "PUDO" | "SAME_DAY_SERVICE" | "STORE_PICKUP" | "THREE_DAY_SERVICE" | "TWO_DAY_SERVICE";
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. Total shipping cost. */
  cost?: string;
  /** Conditional. Format: AN 1-160. */
  comment?: string;
  /** Optional. Format: date. Expected delivery. */
  expectedDate?: string;
  /** Optional. Format: AN 1-255. */
  logisticsProvider?: string;
  /** Optional. Format: AN 1-255. */
  trackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  returnTrackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  normalized?: string;
  /** Optional. Format: AN 1-255. */
  validationStatus?: string;
  /** Optional. Format: AN 1-100. The warehouse that delivers. */
  warehouse?: string;
  /** Optional. Format: GET_FROM_FILE, NO_SHIPPING, SET_PROVIDED_ADDRESS. */
  preference?: "GET_FROM_FILE" | "NO_SHIPPING" | "SET_PROVIDED_ADDRESS";
  /** Optional. Format: AN. */
  middleName?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  phone?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  mobile?: string;
  /** Optional. Format: AN 1-25. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. */
  email?: string;
  /** Optional. Format: RETURN or SHIPMENT. */
  type?: "RETURN" | "SHIPMENT";
}

export interface ScheduleRequestMerchantParameters {
  /** Optional. Format: AN 1-100. Overrides the name; usually the statement's first line. */
  name?: string;
  /** Optional. Format: AN up to 4. Merchant category code. */
  mcc?: string;
  /** Optional. Format: AN 1-100. */
  street?: string;
  /** Optional. Format: AN 1-100. Usually the statement's second line: a city, or a phone, e-mail or URL the shopper knows. */
  city?: string;
  /** Optional. Format: letters and digits, 1-50. */
  state?: string;
  /** Optional. Format: N3. ISO 3166-1 numeric. */
  countryCode?: string;
  /** Optional. Format: A2. ISO 3166-1 alpha-2. */
  country?: string;
  /** Optional. Format: letters, digits, hyphen, 1-16. */
  postcode?: string;
  /** Optional. Format: up to 20. latitude,longitude */
  geographicCoordinates?: string;
  /** Optional. Format: AN 1-100. Where the service was received, if elsewhere. */
  serviceLocationCity?: string;
  /** Optional. Format: letters and digits, 1-50. */
  serviceLocationState?: string;
  /** Optional. Format: up to 3. */
  serviceLocationCountryCode?: string;
  /** Optional. Format: letters, digits, hyphen, 1-16. */
  serviceLocationPostCode?: string;
  /** Optional. Format: up to 20. */
  serviceLocationGeographicCoordinates?: string;
  /** Optional. Format: AN 1-255. */
  additionalContact?: string;
  /** Optional. Format: up to 25 of letters, digits, plus, hyphen, dot. */
  phone?: string;
  /** Optional. Format: same format. Customer-service phone. */
  customerContactPhone?: string;
  /** Optional. Format: AN up to 255. A random id, unique to the transaction. */
  websiteId?: string;
  /** Optional. Format: AN 1-255. */
  url?: string;
  /** Optional. Format: AN 1-60. Partnership agreement code. */
  partnerIdCode?: string;
  /** Optional. Format: AN 1-255. Independent sales organisation. */
  isoId?: string;
  /** Optional. Format: AN 1-255. Payment facilitator. */
  payFacId?: string;
  /** Optional. Format: AN 1-255. Payment facilitator. */
  payFacName?: string;
  /** Optional. Format: AN 1-100. Only for one card network's payment facilitators. */
  submerchantId?: string;
  /** Optional. Format: AN 1-255. */
  marketplaceId?: string;
  /** Optional. Format: AN 1-60. */
  taxId?: string;
  data?: Record<string, string>;
  /** Optional. Format: AN 1-25. */
  foreignRetailIndicator?: string;
  /** Optional. Format: AN 1-100. */
  legalName?: string;
  app?: MerchantAppParameters;
}

export interface ScheduleRequestCartParameters {
  items?: ItemsParameters[];
}

export interface ScheduleRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: AN 32. The stored means that is charged. */
  registrationId: string;
  /** Required. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount: string;
  /** Conditional. Format: decimal amount. The tax part of the amount. */
  taxAmount?: string;
  /** Optional. Format: decimal amount. Discount on the whole invoice (L3 data). */
  discountAmount?: string;
  /** Required. Format: A3 uppercase, ISO 4217. */
  currency: string;
  /** Conditional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Required. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType: string;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: AN 8-255. Appears in reporting only. */
  merchantMemo?: string;
  /** Optional. Format: AN up to 32, letters and digits. */
  transactionCategory?: string;
  /** Optional. Format: AN up to 15, letters and digits. One per order. */
  promotionCode?: string;
  /** Optional. Format: AN 1-10. Language and country; what is supported depends on the connector. */
  locale?: string;
  /** Optional. Format: AN 1-12. Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India. */
  transactionPurposeCode?: string;
  /** Optional. Format: AN 1-10. */
  integrationType?: string;
  /** Optional. Format: AN2. Business application id of a push transfer. */
  transactionBai?: string;
  /** Optional. Format: AN3. Transaction type of a network's send service. */
  transactionTti?: string;
  /** Optional. Format: PURCHASE, FUNDING, PAYMENT. Default: PURCHASE. FUNDING for the funding side of a transfer, PAYMENT for its payout. */
  transactionProcessingCode?: "PURCHASE" | "FUNDING" | "PAYMENT";
  /** Optional. Format: AN35. Links an authorization with its later transactions. */
  lifecycleId?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  job?: JobParameters;
  customer?: ScheduleRequestCustomerParameters;
  billing?: BillingParameters;
  shipping?: ScheduleRequestShippingParameters;
  merchant?: ScheduleRequestMerchantParameters;
  cart?: ScheduleRequestCartParameters;
  customParameters?: Record<string, string>;
  risk?: RiskParameters;
  standingInstruction?: StandingInstructionParameters;
}

export interface RescheduleRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: AN 32. The stored means that is charged. */
  registrationId?: string;
  /** Conditional. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount?: string;
  /** Conditional. Format: A3 uppercase, ISO 4217. */
  currency?: string;
  /** Conditional. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType?: string;
  /** Optional. Format: AN 1-127. What the shopper's statement says; merchant.name may override it. */
  descriptor?: string;
  /** Conditional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: AN 8-255. Your invoice number, unique. Not sent onwards. */
  merchantInvoiceId?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  job?: JobParameters;
  customParameters?: Record<string, string>;
}

export interface DescheduleRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface ThreeDSecureRequestCardParameters {
  /** Optional. Format: A 3-128. */
  holder?: string;
  /** Required. Format: N 8-32. Card or account number. */
  number: string;
  /** Required. Format: N2, 01 to 12. */
  expiryMonth: string;
  /** Required. Format: N4, 19xx or 20xx. */
  expiryYear: string;
  /** Conditional. Format: N 3-4. Asked for on channels that demand it. */
  cvv?: string;
  /** Optional. Format: PAN or DPAN. Whether the number is the card's own or a device's. */
  numberType?: "PAN" | "DPAN";
}

export interface ThreeDSecureRequestShippingParameters {
  /** Conditional. Format: AN 1-100. */
  street1?: string;
  /** Conditional. Format: AN 1-100. */
  street2?: string;
  /** Optional. Format: AN 1-100. When present, street1 holds only the street's name and street2 is ignored. */
  houseNumber1?: string;
  /** Optional. Format: AN 1-100. Requires houseNumber1. */
  houseNumber2?: string;
  /** Conditional. Format: letters 1-80. */
  city?: string;
  /** Conditional. Format: letters, digits, dot, 1-50. */
  state?: string;
  /** Conditional. Format: letters and digits, 1-16. */
  postcode?: string;
  /** Conditional. Format: A2 letters, ISO 3166-1. */
  country?: string;
  /** Conditional. Format: 5-30 uppercase letters and underscore. */
  method?: "CARRIER_DESIGNATED_BY_CUSTOMER" | "ELECTRONIC_DELIVERY" | "EXPEDITED" | "GROUND" | "INTERNATIONAL" | "LOWEST_COST" | "MILITARY" | "NEXT_DAY_OVERNIGHT" | "OTHER" | "POINT_PICKUP" | "PUDO" | "SAME_DAY_SERVICE" | "STORE_PICKUP" | "THREE_DAY_SERVICE" | "TWO_DAY_SERVICE";
  /** Conditional. Format: 1-10 integer digits, dot, 2 decimals. Total shipping cost. */
  cost?: string;
  /** Conditional. Format: AN 1-160. */
  comment?: string;
  /** Optional. Format: date. Expected delivery. */
  expectedDate?: string;
  /** Optional. Format: AN 1-255. */
  logisticsProvider?: string;
  /** Optional. Format: AN 1-255. */
  trackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  returnTrackingNumber?: string;
  /** Optional. Format: AN 1-255. */
  normalized?: string;
  /** Optional. Format: AN 1-255. */
  validationStatus?: string;
  /** Optional. Format: AN 1-100. The warehouse that delivers. */
  warehouse?: string;
  /** Optional. Format: GET_FROM_FILE, NO_SHIPPING, SET_PROVIDED_ADDRESS. */
  preference?: "GET_FROM_FILE" | "NO_SHIPPING" | "SET_PROVIDED_ADDRESS";
  /** Optional. Format: AN. */
  middleName?: string;
  /** Optional. Format: AN 1-60. */
  companyName?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  phone?: string;
  /** Optional. Format: 6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen. */
  mobile?: string;
  /** Optional. Format: AN 1-25. */
  workPhone?: string;
  /** Optional. Format: AN 6-128. */
  email?: string;
  /** Optional. Format: RETURN or SHIPMENT. */
  type?: "RETURN" | "SHIPMENT";
}

export interface ThreeDSecureRequestMerchantParameters {
  /** Optional. Format: AN 1-100. Overrides the name; usually the statement's first line. */
  name?: string;
  /** Optional. Format: AN up to 4. Merchant category code. */
  mcc?: string;
  /** Optional. Format: AN 1-100. */
  street?: string;
  /** Optional. Format: AN 1-100. Usually the statement's second line: a city, or a phone, e-mail or URL the shopper knows. */
  city?: string;
  /** Optional. Format: letters and digits, 1-50. */
  state?: string;
  /** Optional. Format: N3. ISO 3166-1 numeric. */
  countryCode?: string;
  /** Optional. Format: A2. ISO 3166-1 alpha-2. */
  country?: string;
  /** Optional. Format: letters, digits, hyphen, 1-16. */
  postcode?: string;
  /** Optional. Format: up to 20. latitude,longitude */
  geographicCoordinates?: string;
  /** Optional. Format: AN 1-100. Where the service was received, if elsewhere. */
  serviceLocationCity?: string;
  /** Optional. Format: letters and digits, 1-50. */
  serviceLocationState?: string;
  /** Optional. Format: up to 3. */
  serviceLocationCountryCode?: string;
  /** Optional. Format: letters, digits, hyphen, 1-16. */
  serviceLocationPostCode?: string;
  /** Optional. Format: up to 20. */
  serviceLocationGeographicCoordinates?: string;
  /** Optional. Format: AN 1-255. */
  additionalContact?: string;
  /** Optional. Format: up to 25 of letters, digits, plus, hyphen, dot. */
  phone?: string;
  /** Optional. Format: same format. Customer-service phone. */
  customerContactPhone?: string;
  /** Optional. Format: AN up to 255. A random id, unique to the transaction. */
  websiteId?: string;
  /** Optional. Format: AN 1-255. */
  url?: string;
  /** Optional. Format: AN 1-60. Partnership agreement code. */
  partnerIdCode?: string;
  /** Optional. Format: AN 1-255. Independent sales organisation. */
  isoId?: string;
  /** Optional. Format: AN 1-255. Payment facilitator. */
  payFacId?: string;
  /** Optional. Format: AN 1-255. Payment facilitator. */
  payFacName?: string;
  /** Optional. Format: AN 1-100. Only for one card network's payment facilitators. */
  submerchantId?: string;
  /** Optional. Format: AN 1-255. */
  marketplaceId?: string;
  /** Optional. Format: AN 1-60. */
  taxId?: string;
  data?: Record<string, string>;
  /** Optional. Format: AN 1-25. */
  foreignRetailIndicator?: string;
  /** Optional. Format: AN 1-100. */
  legalName?: string;
  app?: MerchantAppParameters;
}

export interface ThreeDSecureRequestThreeDSecureParameters {
  /** Optional. Format: up to 9 integer digits, dot, 2 decimals. The amount to authenticate; risk.amount goes before it. */
  amount?: string;
  /** Optional. Format: A3 ISO 4217. */
  currency?: string;
  /** Conditional. Format: as returned by the mobile SDK in authRequestParams (encrypted). Required to start the app-based v2 flow. */
  deviceInfo?: string;
  merchant?: ThreeDSecureMerchantParameters;
  v2?: V2Parameters;
  /** Optional. Format: N2, 01 to 99. Only marks a requestor-initiated (3RI) request, 3DS 2.2, one network. */
  channel?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Non-payment authentication. */
  npa?: boolean;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Decoupled authentication. */
  decoupled?: boolean;
  /** Optional. Format: RECURRING, SPLIT_SHIPMENT, DELAYED_SHIPMENT. Type of 3RI transaction. */
  threeRIInd?: "RECURRING" | "SPLIT_SHIPMENT" | "DELAYED_SHIPMENT";
  /** Optional. Format: PAYMENT, RECURRING, INSTALLMENT, ADD_CARD, MAINTAIN_CARD, EMV_ID, BILLING_AGREEMENT, SPLIT_SHIPMENT, _DELAYED_SHIPMENT, SPLIT_PAYMENT. DELAYED_SHIPMENT is taken, too. A hint to the access control server. */
  authenticationInd?: "PAYMENT" | "RECURRING" | "INSTALLMENT" | "ADD_CARD" | "MAINTAIN_CARD" | "EMV_ID" | "BILLING_AGREEMENT" | "SPLIT_SHIPMENT" | "_DELAYED_SHIPMENT" | "SPLIT_PAYMENT";
  /** Optional. Format: 01 to 09. 3D Secure 2.2 or higher. */
  challengeIndicator?: string;
  /** Optional. Format: N2, 01 to 04. 3D Secure 2.2 or higher; needs challengeIndicator. */
  exemptionFlag?: string;
  schemeData?: Record<string, string>;
}

export interface ThreeDSecureRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: decimal amount. The only amount that is processed; taxes and shipping are already in it. */
  amount: string;
  /** Required. Format: A3 uppercase, ISO 4217. */
  currency: string;
  /** Conditional. Format: AN 1-32 of letters, digits, underscore. May be left out where the brand is detected from a card number. */
  paymentBrand?: string;
  /** Optional. Format: A2. The operation, e.g. DB, PA, CD, CP, RV, RF, RG. */
  paymentType?: string;
  /** Optional. Format: AN 8-255. Your reference, unique per transaction. Some receivers require it. */
  merchantTransactionId?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. Default: INTERNAL. EXTERNAL goes to the processor's test system, INTERNAL to the simulators. */
  testMode?: "EXTERNAL" | "INTERNAL";
  card?: ThreeDSecureRequestCardParameters;
  customer?: CustomerParameters;
  billing?: BillingParameters;
  shipping?: ThreeDSecureRequestShippingParameters;
  merchant?: ThreeDSecureRequestMerchantParameters;
  threeDSecure?: ThreeDSecureRequestThreeDSecureParameters;
  customParameters?: Record<string, string>;
  /** Conditional. Format: AN 6-2048, absolute, URL-encoded. Where the shopper returns to after the payment. */
  shopperResultUrl?: string;
  /** Optional. Format: AN 6-2048, URL-encoded. Use webhooks instead. */
  notificationUrl?: string;
  risk?: RiskParameters;
  standingInstruction?: StandingInstructionParameters;
}

export interface DateParameters {
  /** Optional. Format: yyyy-MM-dd HH:mm:ss. Together with date.to. */
  from?: string;
  /** Optional. Format: yyyy-MM-dd HH:mm:ss. Together with date.from. */
  to?: string;
}

export interface QueryRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: AN up to 255. Not with date.from and date.to. */
  merchantTransactionId?: string;
  /** Optional. Format: integer 100 to 500. Default: 100. How many are listed. */
  limit?: string | number;
  date?: DateParameters;
  /** Optional. Format: comma-separated list. */
  paymentTypes?: string;
  /** Optional. Format: comma-separated list. */
  paymentMethods?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Also lists what is linked to the transactions found. */
  includeLinkedTransactions?: boolean;
  /** Optional. Format: AN 14. */
  shortId?: string;
}

export interface QueryOneRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: comma-separated list. Narrows the linked transactions; the one with this id is always there. */
  paymentTypes?: string;
  /** Optional. Format: comma-separated list. Narrows the linked transactions; the one with this id is always there. */
  paymentMethods?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Also lists what is linked to the transactions found. */
  includeLinkedTransactions?: boolean;
}

export interface QueryRecordsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: AN up to 255. Not with date.from and date.to. */
  merchantTransactionId?: string;
  /** Optional. Format: integer 100 to 500. Default: 100. How many are listed. */
  limit?: string | number;
  date?: DateParameters;
  /** Optional. Format: comma-separated list. */
  paymentTypes?: string;
  /** Optional. Format: comma-separated list. */
  paymentMethods?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Also lists what is linked to the transactions found. */
  includeLinkedTransactions?: boolean;
  /** Optional. Format: AN 14. */
  shortId?: string;
  /** Optional. Format: integer 1 to 999999999. Which page of limit transactions, the oldest first: what arrives meanwhile moves no page that is full. */
  pageNo?: string | number;
}

export interface QueryRecordRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: comma-separated list. Narrows the linked transactions; the one with this id is always there. */
  paymentTypes?: string;
  /** Optional. Format: comma-separated list. Narrows the linked transactions; the one with this id is always there. */
  paymentMethods?: string;
  /** Optional. Format: true or false. 1 and 0 in their place, and any letter case, are taken and come back as true or false. Also lists what is linked to the transactions found. */
  includeLinkedTransactions?: boolean;
}

export interface CardFactsRequestCardParameters {
  /** Required. Format: N6-8. The first digits of the number. The whole number is refused. */
  bin: string;
}

export interface CardFactsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  card?: CardFactsRequestCardParameters;
}

export interface SettlementsRequestDateParameters {
  /** Required. Format: date. */
  from: string;
  /** Required. Format: date. */
  to: string;
}

export interface SettlementsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: SettlementsRequestDateParameters;
  /** Optional. Format: A3 ISO 4217. Only settlements in this currency. */
  currency?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. INTERNAL: made-up settlements, always the same. Else: yours. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface SettlementRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: DateParameters;
  /** Optional. Format: SettlementTxDate. */
  sortValue?: "SettlementTxDate";
  /** Optional. Format: ASC, DESC, asc, desc. asc and desc are taken, too. */
  sortOrder?: "ASC" | "DESC";
  /** Optional. Format: EXTERNAL or INTERNAL. INTERNAL: made-up settlements, always the same. Else: yours. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface AggregationsRequestDateParameters {
  /** Required. Format: date. */
  from: string;
  /** Required. Format: date. */
  to: string;
}

export interface AggregationsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: AggregationsRequestDateParameters;
  /** Optional. Format: A3 ISO 4217. Only settlements in this currency. */
  currency?: string;
  /** Optional. Format: EXTERNAL or INTERNAL. INTERNAL: made-up settlements, always the same. Else: yours. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface AggregationRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: DateParameters;
  /** Optional. Format: SettlementTxDate. */
  sortValue?: "SettlementTxDate";
  /** Optional. Format: ASC, DESC, asc, desc. asc and desc are taken, too. */
  sortOrder?: "ASC" | "DESC";
  /** Optional. Format: EXTERNAL or INTERNAL. INTERNAL: made-up settlements, always the same. Else: yours. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface AggregationsPageRequestDateParameters {
  /** Required. Format: date. */
  from: string;
  /** Required. Format: date. */
  to: string;
}

export interface AggregationsPageRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: AggregationsPageRequestDateParameters;
  /** Optional. Format: A3 ISO 4217. Only settlements in this currency. */
  currency?: string;
  /** Optional. Format: SETTLED, CHARGEBACK, CHARGEBACK REVERSAL or FEE. Only such records. */
  reconciliationType?: "SETTLED" | "CHARGEBACK" | "CHARGEBACK REVERSAL" | "FEE";
  /** Optional. Format: integer 1 to 999999999. Default: 1. Pages hold 100. */
  pageNo?: string | number;
  /** Optional. Format: EXTERNAL or INTERNAL. INTERNAL: made-up settlements, always the same. Else: yours. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface AggregationPageRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: DateParameters;
  /** Optional. Format: SettlementTxDate. */
  sortValue?: "SettlementTxDate";
  /** Optional. Format: ASC, DESC, asc, desc. asc and desc are taken, too. */
  sortOrder?: "ASC" | "DESC";
  /** Optional. Format: SETTLED, CHARGEBACK, CHARGEBACK REVERSAL or FEE. Only such records. */
  reconciliationType?: "SETTLED" | "CHARGEBACK" | "CHARGEBACK REVERSAL" | "FEE";
  /** Optional. Format: integer 1 to 999999999. Default: 1. Pages hold 100. */
  pageNo?: string | number;
  /** Optional. Format: EXTERNAL or INTERNAL. INTERNAL: made-up settlements, always the same. Else: yours. */
  testMode?: "EXTERNAL" | "INTERNAL";
}

export interface ApprovalsRequestDateParameters {
  /** Required. Format: date. The first day, UTC by your clock. */
  from: string;
  /** Required. Format: date. The last day, included. */
  to: string;
}

export interface ApprovalsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: ApprovalsRequestDateParameters;
  /** Optional. Format: all, day, hour, brand, country, issuer, cardType, cardLevel, bin, acquirer, means, threeDSecure or shopper. Default: all. What the figures are divided by. */
  groupBy?: "all" | "day" | "hour" | "brand" | "country" | "issuer" | "cardType" | "cardLevel" | "bin" | "acquirer" | "means" | "threeDSecure" | "shopper";
  /** Optional. Format: A3 ISO 4217. Only payments in this currency. */
  currency?: string;
}

export interface ApprovalsWaterfallRequestDateParameters {
  /** Required. Format: date. The first day, UTC by your clock. */
  from: string;
  /** Required. Format: date. The last day, included. */
  to: string;
}

export interface ApprovalsWaterfallRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: ApprovalsWaterfallRequestDateParameters;
  /** Optional. Format: A3 ISO 4217. Only payments in this currency. */
  currency?: string;
}

export interface ApprovalsGainsRequestDateParameters {
  /** Required. Format: date. The first day, UTC by your clock. */
  from: string;
  /** Required. Format: date. The last day, included. */
  to: string;
}

export interface ApprovalsGainsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  date?: ApprovalsGainsRequestDateParameters;
  /** Optional. Format: A3 ISO 4217. Only payments in this currency. */
  currency?: string;
}

export interface MoveClockRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Conditional. Format: seconds. How far to move the merchant's clock forward. */
  advance?: string | number;
  /** Conditional. Format: ISO 8601. The moment to move the clock to; it may not go back behind the present. */
  now?: string;
}

export interface AcquirerMessagesRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: AN 32. The payment. */
  id: string;
}

export interface ChangeNetworkTokenRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: SUSPENDED, RESUMED, REPLACED or DELETED. The answer is the registration as it then stands. REPLACED: the token is valid three years longer. */
  event: "SUSPENDED" | "RESUMED" | "REPLACED" | "DELETED";
}

export interface MailsRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: AN 32. The payment. */
  id: string;
}

export interface DecideTransferRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: arrived or returned. The answer is the payment as it then stands. */
  outcome: "arrived" | "returned";
}

export interface MakeWalletTokenRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Required. Format: wallet1, wallet2 or wallet3. The wallet that the token is for. */
  wallet: "wallet1" | "wallet2" | "wallet3";
  /** Optional. Format: ec_v1, rsa_v1, ecv2, ecv1 or jwe. The wallet's first one, if none. */
  format?: "ec_v1" | "rsa_v1" | "ecv2" | "ecv1" | "jwe";
  /** Required. Format: decimal amount. What the shopper agreed to pay. */
  amount: string;
  /** Required. Format: A3 ISO 4217. */
  currency: string;
  /** Optional. Format: N 12-19. Default: 4200000000000000. The card in the token; see the test data. */
  number?: string;
  /** Optional. Format: cryptogram or none. none: wallet2's PAN_ONLY, the card's own number without a proof. */
  proof?: "cryptogram" | "none";
  /** Optional. Format: expired or tampered. A token that must be refused. */
  defect?: "expired" | "tampered";
}

export interface ReadWebhooksRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: signed or encrypted. Default: signed. Of which inspector. */
  mode?: "signed" | "encrypted";
  /** Optional. Format: a number. Messages above this number; else the newest. */
  after?: string | number;
}

export interface OpenInspectorRequest {
  /** Required. Format: AN 32, lowercase hexadecimal. The channel; the merchant entity where channel dispatching is active. */
  entityId?: string;
  /** Optional. Format: signed or encrypted. Default: signed. How webhooks are made. */
  mode?: "signed" | "encrypted";
}
