"use strict";
/** Webhooks: verify one, and read it. Both modes: signed (Standard Webhooks) and encrypted (AES-256-GCM). */

const { createDecipheriv, createHmac, timingSafeEqual } = require("node:crypto");
const { WebhookVerificationError } = require("./errors.cjs");

/** A signed webhook that is older may be sent again by a stranger. */
const MAX_AGE_S = 300;

/**
 * The event, if it was made with one of your secrets: { type, action, payload, subject, sequence }. `body`: the raw body;
 * `headers`: an object or Headers; `secrets`: 64 hex digits or whsec_…, while you change it both.
 */
function verify(body, headers, secrets) {
  const keys = [secrets].flat().map(parseSecret);
  const octets = typeof body === "string" ? Buffer.from(body) : Buffer.from(body ?? "");
  const pairs = typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
  const lower = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), String(value)]));
  const text = lower["x-initialization-vector"] === undefined ? check(octets, lower, keys) : decrypt(octets, lower, keys);
  let found;
  try {
    found = JSON.parse(text.toString());
  } catch {
    found = undefined;
  }
  if (typeof found?.type !== "string" || typeof found.action !== "string") {
    throw new WebhookVerificationError("this is no event of a gateway");
  }
  const payload = found.payload ?? {};
  const subject = `${found.type} ${payload.shortId ?? ""}`;
  return { type: found.type, action: found.action, payload, subject, sequence: Number(payload.sequence ?? 0) };
}

function parseSecret(text) {
  const key = text.startsWith("whsec_") ? Buffer.from(text.slice(6), "base64") : Buffer.from(text, "hex");
  if (key.length !== 32) throw new TypeError("a webhook secret is 64 hex digits, or whsec_ and 32 bytes in base64");
  return key;
}

function check(body, headers, keys) {
  const sentAt = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(sentAt)) {
    throw new WebhookVerificationError("it has neither the headers of a signed nor those of an encrypted webhook");
  }
  if (Math.abs(Date.now() / 1000 - Number(sentAt)) > MAX_AGE_S) {
    throw new WebhookVerificationError("it is too old, or your clock is wrong");
  }
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"] ?? ""}.${sentAt}.`), body]);
  const sent = (headers["webhook-signature"] ?? "").split(" ").map((part) => Buffer.from(part));
  const right = keys.some((key) => {
    const expected = Buffer.from(`v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
    return sent.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
  });
  if (!right) throw new WebhookVerificationError("it is not signed with one of your secrets");
  return body;
}

const isHex = (text) => typeof text === "string" && /^(?:[0-9a-f]{2})*$/i.test(text);

function decrypt(body, headers, keys) {
  let hex;
  try {
    hex = body[0] === 0x7b ? JSON.parse(body.toString()).encryptedBody : body.toString();
  } catch {
    hex = undefined;
  }
  const parts = [hex, headers["x-initialization-vector"], headers["x-authentication-tag"]];
  const [sealed, iv, tag] = parts.map((text) => Buffer.from(isHex(text) ? text : "", "hex"));
  if (!sealed.length || iv.length !== 12 || tag.length !== 16) {
    throw new WebhookVerificationError("its body or headers are not hex");
  }
  for (const key of keys) {
    const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: 16 });
    decipher.setAuthTag(tag);
    try {
      return Buffer.concat([decipher.update(sealed), decipher.final()]);
    } catch {
      // Not this key.
    }
  }
  throw new WebhookVerificationError("it is not encrypted with one of your secrets");
}

module.exports = { MAX_AGE_S, verify };
