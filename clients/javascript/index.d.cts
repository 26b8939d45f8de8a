import type * as m from "./models.cjs";

export * from "./models.cjs";

export type Outcome = "approved" | "review" | "pending" | "chargeback" | "declined";

/** What every answer has besides its JSON. */
export interface AnswerMeta {
  readonly httpStatus: number;
  /** The key it was asked with. */
  readonly idempotencyKey: string;
  /** It is the answer to an earlier request with this key. */
  readonly replayed: boolean;
  /** The result code's family. */
  readonly outcome: Outcome;
}
export type Answered<T> = T & AnswerMeta;
export class Answer {}

export interface KeyOption {
  /** Yours, for one thing to be done once; a new one is made without it. */
  idempotencyKey?: string;
}
export interface Money {
  /** "92.00" */
  amount: string;
  currency: string;
}
export interface ClientOptions {
  token: string;
  /** The channel's. */
  entityId?: string;
  /** Milliseconds for one try; 60 000. */
  timeout?: number;
  /** Further tries of what is safe to repeat; 2. */
  maxRetries?: number;
  fetch?: typeof globalThis.fetch;
}

/** A gateway. For servers: its token must never reach a browser. */
export class Tollhouse {
  constructor(baseUrl: string, options: ClientOptions);
  readonly payments: {
    create(parameters: m.PaymentRequest, options?: KeyOption): Promise<Answered<m.Payment>>;
    get(paymentId: string): Promise<Answered<m.Payment>>;
    /** Any operation that refers to a payment; paymentType names it. */
    followUp(paymentId: string, parameters: m.FollowUpRequest, options?: KeyOption): Promise<Answered<m.Payment>>;
    capture(paymentId: string, money: Money, options?: KeyOption): Promise<Answered<m.Payment>>;
    refund(paymentId: string, money: Money, options?: KeyOption): Promise<Answered<m.Payment>>;
    reverse(paymentId: string, options?: KeyOption): Promise<Answered<m.Payment>>;
  };
  readonly checkouts: {
    create(parameters: m.CheckoutRequest, options?: KeyOption): Promise<Answered<m.Checkout>>;
    update(checkoutId: string, parameters: m.UpdateCheckoutRequest, options?: KeyOption): Promise<Answered<m.Checkout>>;
    getPayment(checkoutId: string): Promise<Answered<m.Payment>>;
    getRegistration(checkoutId: string): Promise<Answered<m.Registration>>;
  };
  readonly paymentLinks: {
    create(parameters: m.PaymentLinkRequest, options?: KeyOption): Promise<Answered<m.PaymentLink>>;
    get(linkId: string): Promise<Answered<m.PaymentLink>>;
    list(filters?: m.PaymentLinksRequest): Promise<Answered<m.PaymentLinks>>;
    /** Close it: it is neither opened nor paid any more. */
    deactivate(linkId: string): Promise<Answered<m.PaymentLink>>;
  };
  readonly registrations: {
    create(parameters: m.RegistrationRequest, options?: KeyOption): Promise<Answered<m.Registration>>;
    get(registrationId: string): Promise<Answered<m.Registration>>;
    update(
      registrationId: string,
      parameters: m.UpdateRegistrationRequest,
      options?: KeyOption,
    ): Promise<Answered<m.Registration>>;
    extend(registrationId: string, options?: KeyOption): Promise<Answered<m.Registration>>;
    delete(registrationId: string): Promise<Answered<m.Registration>>;
    pay(registrationId: string, parameters: m.OneClickRequest, options?: KeyOption): Promise<Answered<m.Payment>>;
  };
  readonly schedules: {
    create(parameters: m.ScheduleRequest, options?: KeyOption): Promise<Answered<m.Schedule>>;
    get(scheduleId: string): Promise<Answered<m.Schedule>>;
    reschedule(scheduleId: string, parameters: m.RescheduleRequest, options?: KeyOption): Promise<Answered<m.Schedule>>;
    deschedule(scheduleId: string, parameters?: m.DescheduleRequest, options?: KeyOption): Promise<Answered<m.Schedule>>;
  };
  /** 3-D Secure without a payment. */
  readonly authentications: {
    create(parameters: m.ThreeDSecureRequest): Promise<Answered<m.Authentication>>;
    get(authenticationId: string): Promise<Answered<m.Authentication>>;
  };
  readonly transactions: {
    get(transactionId: string, filters?: m.QueryRecordRequest): Promise<Answered<m.RecordList>>;
    list(filters: m.QueryRecordsRequest): Promise<Answered<m.RecordList>>;
    /** Every transaction of all pages, the oldest first. */
    iterate(filters: m.QueryRecordsRequest): AsyncGenerator<m.Listed>;
  };
  readonly reports: {
    settlements(filters: m.AggregationsPageRequest): AsyncGenerator<m.Settlement>;
    settlementRecords(settlementId: string, filters?: m.AggregationPageRequest): AsyncGenerator<Record<string, unknown>>;
  };
  /** Tools of the test environment; in live they are not found. */
  readonly test: {
    readClock(): Promise<Answered<m.Clock>>;
    advanceClock(seconds: number): Promise<Answered<m.Clock>>;
    resetClock(): Promise<Answered<m.Clock>>;
    listAcquirerMessages(paymentId: string): Promise<Answered<m.AcquirerMessages>>;
    listMails(paymentId: string): Promise<Answered<m.Mails>>;
    decideTransfer(paymentId: string, outcome: "arrived" | "returned"): Promise<Answered<m.Payment>>;
    createWalletToken(parameters: m.MakeWalletTokenRequest): Promise<Answered<m.WalletToken>>;
  };
  listResultCodes(): Promise<Answered<m.ResultCodes>>;
  /** Any request, for what has no method here. `idempotencyKey`: left out sends none, "" a new one. */
  request<T = Record<string, unknown>>(
    method: string,
    path: string,
    parameters?: object,
    options?: { idempotencyKey?: string; entity?: boolean },
  ): Promise<Answered<T>>;
}

export const VERSION: string;
export function classifyResultCode(code: string): Outcome;
export function flatten(parameters: object): [string, string][];

export interface WebhookEvent {
  readonly type: string;
  readonly action: string;
  readonly payload: Record<string, any>;
  /** Keep the highest `sequence` of each, and do nothing for a lower one. */
  readonly subject: string;
  readonly sequence: number;
}
export const webhooks: {
  readonly MAX_AGE_S: number;
  /** The event, if it was made with one of your secrets. `body`: the raw one. Throws WebhookVerificationError. */
  verify(
    body: string | Uint8Array,
    headers: Headers | Record<string, string | string[] | undefined>,
    secrets: string | string[],
  ): WebhookEvent;
};

export class TollhouseError extends Error {}
/** A payment may have been made: send the same with the same key, and it is made once. */
export class NoAnswerError extends TollhouseError {
  readonly idempotencyKey: string;
}
export class WebhookVerificationError extends TollhouseError {}
export class ApiError extends TollhouseError {
  readonly status: number;
  readonly code: string;
  readonly description: string;
  /** Names the request to the gateway's staff. */
  readonly ndc: string;
  readonly errors: readonly m.ParameterError[];
  /** Seconds. */
  readonly retryAfter?: number;
  readonly body: Record<string, any>;
}
export class ParameterErrors extends ApiError {}
export class AuthenticationError extends ApiError {}
export class NotFoundError extends ApiError {}
export class ConflictError extends ApiError {}
export class RateLimitError extends ApiError {}
export class ServerError extends ApiError {}
