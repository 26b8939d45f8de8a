"use strict";
/** Errors of the client. None of them holds what was sent: no card data, no token. */

class TollhouseError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** No answer in time. A payment may have been made: send the same with the same `idempotencyKey`, and it is made once. */
class NoAnswerError extends TollhouseError {
  constructor(message, idempotencyKey = "") {
    super(message);
    this.idempotencyKey = idempotencyKey;
  }
}

/** A webhook that was not made with one of your secrets, is too old, or cannot be read. Answer 400. */
class WebhookVerificationError extends TollhouseError {}

/** A request that was refused. `errors`: [{ name, message, value? }]; `ndc` names it to the gateway's staff. */
class ApiError extends TollhouseError {
  constructor(status, body, retryAfter) {
    const result = body.result ?? {};
    const found = result.parameterErrors ?? [];
    const told = found.map((one) => `${one.name}: ${one.message}`).join("; ");
    super(`HTTP ${status} ${result.code ?? ""} ${result.description ?? ""}`.trimEnd() + (told ? `: ${told}` : ""));
    Object.assign(this, {
      status,
      code: result.code ?? "",
      description: result.description ?? "",
      ndc: body.ndc ?? "",
      errors: found,
      retryAfter,
    });
    Object.defineProperty(this, "body", { value: body, enumerable: false });
  }
}

/** 400: parameters are missing or wrong; all of them are in `errors`. Nothing was made. */
class ParameterErrors extends ApiError {}
/** 401 or 403: the token is missing, wrong, or may not do this for this entityId. */
class AuthenticationError extends ApiError {}
/** 404: no such id for this entityId. */
class NotFoundError extends ApiError {}
/** 409: a request with this idempotency key is still being made. */
class ConflictError extends ApiError {}
/** 429: too many requests; ask again after `retryAfter` seconds. */
class RateLimitError extends ApiError {}
/** 5xx: the gateway's fault. Repeat a payment only with the same key. */
class ServerError extends ApiError {}

const BY_STATUS = {
  401: AuthenticationError,
  403: AuthenticationError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError,
};

function buildApiError(status, body, retryAfter) {
  const faulty = body.result?.parameterErrors?.length ? ParameterErrors : ApiError;
  return new (BY_STATUS[status] ?? (status >= 500 ? ServerError : faulty))(status, body, retryAfter);
}

module.exports = {
  TollhouseError,
  NoAnswerError,
  WebhookVerificationError,
  ApiError,
  ParameterErrors,
  AuthenticationError,
  NotFoundError,
  ConflictError,
  RateLimitError,
  ServerError,
  buildApiError,
};
