"use strict";
/**
 * A client of the Tollhouse payment gateway, for servers (Node.js 18 or newer): a token must never reach a browser.
 * Types are in index.d.cts; tables of the API in constants.cjs.
 */

const { randomUUID } = require("node:crypto");
const { OUTCOME_PATTERNS, MAP_PARAMETERS } = require("./constants.cjs");
const errors = require("./errors.cjs");
const webhooks = require("./webhooks.cjs");

const VERSION = "0.1.0";
/** Statuses after which the same request is sent again, where that is safe. */
const REPEATED_STATUSES = new Set([409, 429, 502, 503, 504]);
const MAX_PAUSE_MS = 30_000;
const FIRST_PAUSE_MS = 500;
/** Errors of connections that were never made: nothing was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);

/** The outcome that a result code stands for. */
function classifyResultCode(code) {
  return OUTCOME_PATTERNS.find(([, pattern]) => pattern.test(code))?.[0] ?? "declined";
}

/** An answer: the JSON object's own fields, and what is told about it, which is not enumerated. */
class Answer {
  constructor(body, told) {
    Object.assign(this, body);
    const outcome = classifyResultCode(body.result?.code ?? "");
    for (const [name, value] of Object.entries({ ...told, outcome })) {
      Object.defineProperty(this, name, { value, enumerable: false });
    }
  }
}

/** Nested parameters by their full names, as [name, value] pairs. Throws TypeError for numbers that are not whole. */
function flatten(node, name = "") {
  if (node === null || node === undefined) return [];
  if (Array.isArray(node)) return node.flatMap((child, index) => flatten(child, `${name}[${index}]`));
  if (typeof node === "object") {
    return Object.entries(node).flatMap(([key, child]) =>
      flatten(child, MAP_PARAMETERS.has(name) ? `${name}[${key}]` : name ? `${name}.${key}` : key),
    );
  }
  if (typeof node === "number" && !Number.isSafeInteger(node)) {
    throw new TypeError(`${name} is a fraction; send a text: binary fractions are not money`);
  }
  if (!["string", "number", "boolean", "bigint"].includes(typeof node)) {
    throw new TypeError(`${name} is a ${typeof node}; send a text, a whole number or a boolean`);
  }
  return [[name, String(node)]];
}

function buildPath(...parts) {
  if (!parts.every((part) => typeof part === "string" && part)) throw new TypeError("an id is empty");
  // They would lead to another resource.
  if (parts.includes(".") || parts.includes("..")) throw new TypeError("an id is only dots");
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/** Milliseconds of a Retry-After header, or undefined. */
function findRetryAfter(response) {
  const text = response?.headers.get("Retry-After") ?? "";
  return /^\d+$/.test(text) ? Number(text) * 1000 : undefined;
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

class Tollhouse {
  #baseUrl;
  #token;
  #entityId;
  #timeout;
  #maxRetries;
  #fetch;

  constructor(baseUrl, { token, entityId = "", timeout = 60_000, maxRetries = 2, fetch = globalThis.fetch } = {}) {
    if (!/^https?:\/\/[^/]/.test(baseUrl)) throw new TypeError("baseUrl is no address of a gateway: https://…");
    if (!token) throw new TypeError("token is empty");
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#token = token;
    this.#entityId = entityId;
    this.#timeout = timeout;
    this.#maxRetries = maxRetries;
    this.#fetch = fetch;
    const post = (path, parameters, { idempotencyKey = "" } = {}) =>
      this.request("POST", path, parameters, { idempotencyKey });
    const get = (path, parameters) => this.request("GET", path, parameters);
    const followUp = (id, parameters, options) => post(buildPath("v1", "payments", id), parameters, options);

    this.payments = {
      create: (parameters, options) => post("/v1/payments", parameters, options),
      get: (id) => get(buildPath("v1", "payments", id)),
      followUp,
      capture: (id, { amount, currency }, options) => followUp(id, { paymentType: "CP", amount, currency }, options),
      refund: (id, { amount, currency }, options) => followUp(id, { paymentType: "RF", amount, currency }, options),
      reverse: (id, options) => followUp(id, { paymentType: "RV" }, options),
    };
    this.checkouts = {
      create: (parameters, options) => post("/v1/checkouts", parameters, options),
      update: (id, parameters, options) => post(buildPath("v1", "checkouts", id), parameters, options),
      getPayment: (id) => get(buildPath("v1", "checkouts", id, "payment")),
      getRegistration: (id) => get(buildPath("v1", "checkouts", id, "registration")),
    };
    this.paymentLinks = {
      create: (parameters, options) => post("/v1/paymentLinks", parameters, options),
      get: (id) => get(buildPath("v1", "paymentLinks", id)),
      list: (filters) => get("/v1/paymentLinks", filters),
      deactivate: (id) => this.request("DELETE", buildPath("v1", "paymentLinks", id)),
    };
    this.registrations = {
      create: (parameters, options) => post("/v1/registrations", parameters, options),
      get: (id) => get(buildPath("v1", "registrations", id)),
      update: (id, parameters, options) => post(buildPath("v1", "registrations", id), parameters, options),
      extend: (id, options) => post(buildPath("v1", "registrations", id, "extend"), {}, options),
      delete: (id) => this.request("DELETE", buildPath("v1", "registrations", id)),
      pay: (id, parameters, options) => post(buildPath("v1", "registrations", id, "payments"), parameters, options),
    };
    this.schedules = {
      create: (parameters, options) => post("/v1/schedules", parameters, options),
      get: (id) => get(buildPath("v1", "schedules", id)),
      reschedule: (id, parameters, options) => post(buildPath("v1", "schedules", id, "reschedule"), parameters, options),
      deschedule: (id, parameters, options) => post(buildPath("v1", "schedules", id, "deschedule"), parameters, options),
    };
    this.authentications = {
      create: (parameters) => this.request("POST", "/v1/threeDSecure", parameters),
      get: (id) => get(buildPath("v1", "threeDSecure", id)),
    };
    this.transactions = {
      get: (id, filters) => get(buildPath("v3", "query", id), filters),
      list: (filters) => get("/v3/query", filters),
      iterate: (filters) => this.#pages("/v3/query", filters, "records"),
    };
    const settled = "/reports/v2/reconciliations/aggregations";
    this.reports = {
      settlements: (filters) => this.#pages(settled, filters, "aggregations"),
      settlementRecords: (id, filters) => this.#pages(`${settled}${buildPath(id)}`, filters, "reconciliations"),
    };
    const clock = "/v1/test/clock";
    this.test = {
      readClock: () => get(clock),
      advanceClock: (seconds) => this.request("POST", clock, { advance: seconds }),
      resetClock: () => this.request("DELETE", clock),
      listAcquirerMessages: (id) => get("/v1/test/acquirer/messages", { id }),
      listMails: (id) => get("/v1/test/mails", { id }),
      decideTransfer: (id, outcome) => this.request("POST", buildPath("v1", "test", "transfers", id), { outcome }),
      createWalletToken: (parameters) => this.request("POST", "/v1/test/wallet-token", parameters),
    };
  }

  listResultCodes() {
    return this.request("GET", "/v1/resultcodes", {}, { entity: false });
  }

  /** Any request. `idempotencyKey`: left out sends none, "" a new one. */
  async request(method, path, parameters = {}, { idempotencyKey, entity = true } = {}) {
    const pairs = new URLSearchParams(flatten(parameters));
    if (entity && this.#entityId && !pairs.has("entityId")) pairs.set("entityId", this.#entityId);
    const key = idempotencyKey === undefined ? "" : idempotencyKey || randomUUID();
    const repeatable = Boolean(key) || method === "GET";
    for (let tried = 1; ; tried += 1) {
      let response;
      let text = "";
      let reason = "";
      let unsent = false;
      try {
        response = await this.#send(method, path, pairs, key);
        text = await response.text();
      } catch (error) {
        response = undefined;
        reason = error.cause?.code ?? error.name;
        unsent = UNSENT.has(reason);
      }
      const pause = this.#findPause(response, tried, repeatable || unsent);
      if (pause !== undefined) {
        await sleep(pause);
        continue;
      }
      if (!response) throw new errors.NoAnswerError(`no answer: ${reason}`, key);
      return readAnswer(response, text, key);
    }
  }

  #findPause(response, tried, again) {
    if (!again || tried > this.#maxRetries || (response && !REPEATED_STATUSES.has(response.status))) return undefined;
    const wait = findRetryAfter(response);
    if (wait !== undefined) return wait <= MAX_PAUSE_MS ? wait : undefined;
    return Math.min(FIRST_PAUSE_MS * 2 ** (tried - 1), MAX_PAUSE_MS) * (0.5 + Math.random() / 2);
  }

  #send(method, path, pairs, key) {
    const headers = {
      Authorization: `Bearer ${this.#token}`,
      Accept: "application/json",
      "User-Agent": `tollhouse-javascript/${VERSION}`,
    };
    if (key) headers["Idempotency-Key"] = key;
    const posts = method === "POST";
    const query = pairs.toString();
    return this.#fetch(`${this.#baseUrl}${path}${posts || !query ? "" : `?${query}`}`, {
      method,
      headers,
      body: posts ? pairs : undefined,
      redirect: "manual",
      signal: AbortSignal.timeout(this.#timeout),
    });
  }

  async *#pages(path, filters, name) {
    for (let pageNo = 1; ; pageNo += 1) {
      const page = await this.request("GET", path, { ...filters, pageNo });
      yield* page[name];
      if (pageNo >= (page.pages ?? 1)) return;
    }
  }
}

function readAnswer(response, text, idempotencyKey) {
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    // No JSON: a proxy's page. The status tells.
  }
  const known = body !== null && typeof body === "object" && !Array.isArray(body);
  // A payment that exists was answered, whatever became of it; a refusal by limit has an id, too.
  if (response.status < 400 || (known && body.id && response.status === 400)) {
    if (!known) throw new errors.NoAnswerError(`HTTP ${response.status} without JSON: is this a gateway?`, idempotencyKey);
    const replayed = response.headers.get("Idempotent-Replayed") === "true";
    return new Answer(body, { httpStatus: response.status, idempotencyKey, replayed });
  }
  const wait = findRetryAfter(response);
  throw errors.buildApiError(response.status, known ? body : {}, wait === undefined ? undefined : wait / 1000);
}

const { buildApiError: _internal, ...publicErrors } = errors;
module.exports = { Tollhouse, Answer, VERSION, classifyResultCode, flatten, webhooks, ...publicErrors };
