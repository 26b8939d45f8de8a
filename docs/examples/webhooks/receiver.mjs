// headers: names in lower case, as Node.js gives them; body: the raw bytes as a Buffer; secrets: 64 hex digits each,
// the one you use and, while you change it, the next. Both throw where the message is not from this gateway.
import { createDecipheriv, createHmac, timingSafeEqual } from "node:crypto";

/** The message of a signed webhook. */
export function readSigned(headers, body, secrets) {
  const sentAt = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(sentAt) || Math.abs(Date.now() / 1000 - Number(sentAt)) > 300) throw new Error("too old, or not signed");
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${sentAt}.`), body]);
  const signatures = (headers["webhook-signature"] ?? "").split(" ").map((part) => Buffer.from(part));
  for (const secret of secrets) {
    const digest = createHmac("sha256", Buffer.from(secret, "hex")).update(signed).digest("base64");
    const expected = Buffer.from(`v1,${digest}`);
    if (signatures.some((one) => one.length === expected.length && timingSafeEqual(one, expected))) return JSON.parse(body);
  }
  throw new Error("not signed with a secret of ours");
}

/** The message of an encrypted webhook, wrapped in JSON or not. */
export function readEncrypted(headers, body, secrets) {
  const text = body[0] === 0x7b ? JSON.parse(body).encryptedBody : body.toString();
  const iv = Buffer.from(headers["x-initialization-vector"] ?? "", "hex");
  const tag = Buffer.from(headers["x-authentication-tag"] ?? "", "hex");
  for (const secret of secrets) {
    try {
      const cipher = createDecipheriv("aes-256-gcm", Buffer.from(secret, "hex"), iv, { authTagLength: 16 });
      cipher.setAuthTag(tag);
      return JSON.parse(Buffer.concat([cipher.update(text, "hex"), cipher.final()]));
    } catch {
      // Not this secret.
    }
  }
  throw new Error("not encrypted with a secret of ours");
}
