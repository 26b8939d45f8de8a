import { readFileSync } from "node:fs";
import {
  AuthenticationError, NoAnswerError, NotFoundError, ParameterErrors, Tollhouse, WebhookVerificationError, webhooks,
} from "@tollhouse/client";

const [url, token, entityId, messages] = process.argv.slice(2);
const gateway = new Tollhouse(url, { token, entityId });
const order = {
  amount: "92.00", currency: "EUR", paymentBrand: "VISA", paymentType: "PA", merchantTransactionId: "order-4711",
  customParameters: { "order.kind": "gift" }, cart: { items: [{ name: "Pen" }] },
};
const card = { number: "4200000000000000", holder: "Jane Jones", expiryMonth: "05", expiryYear: "2034" };
const told = {};
const failure = async (promise) => promise.then(() => undefined, (error) => error);

const paid = await gateway.payments.create({ ...order, card }, { idempotencyKey: "node-1" });
const again = await gateway.payments.create({ ...order, card }, { idempotencyKey: "node-1" });
told.paid = [paid.outcome, again.replayed && paid.id === again.id, paid.customParameters["order.kind"], paid.cart.items[0].name];
const capture = await gateway.payments.capture(paid.id, { amount: "50.00", currency: "EUR" });
told.capture = capture.outcome;
told.refund = (await gateway.payments.refund(capture.id, { amount: "10.00", currency: "EUR" })).outcome;
told.reverse = (await gateway.payments.reverse(paid.id)).outcome;
const linked = await gateway.transactions.get(paid.id, { includeLinkedTransactions: true });
told.found = linked.records.map((one) => one.paymentType).sort();
told.settlements = 0;
const date = { from: "2026-05-14", to: "2026-05-15" };
for await (const one of gateway.reports.settlements({ date, testMode: "INTERNAL" })) told.settlements += one.amount ? 1 : 0;
told.read = (await gateway.payments.get(paid.id)).amount;
told.declined = (await gateway.payments.create({ ...order, card: { ...card, number: "4000015500000005" } })).outcome;

const refused = await failure(gateway.payments.create({ ...order, card, amount: "ninety" }));
told.refused = refused instanceof ParameterErrors && [refused.status, refused.errors.map((one) => one.name), !!refused.ndc];
told.hidden = !`${refused.stack}${JSON.stringify(refused)}`.includes(card.number);
const stranger = await failure(new Tollhouse(url, { token: "wrong", entityId }).payments.get(paid.id));
told.stranger = stranger instanceof AuthenticationError && stranger.status;
const missing = await failure(gateway.payments.get("0".repeat(32)));
told.missing = missing instanceof NotFoundError && missing.status;
told.fraction = (await failure(gateway.payments.create({ ...order, card, amount: 9.99 }))) instanceof TypeError;
const dots = async () => gateway.registrations.pay("..", order);
told.dots = (await failure(dots())) instanceof TypeError;
const nobody = new Tollhouse("http://127.0.0.1:8", { token, maxRetries: 0 });
const away = await failure(nobody.payments.reverse(paid.id, { idempotencyKey: "k" }));
told.away = away instanceof NoAnswerError && away.idempotencyKey === "k";

let forged = 0;
for (const [mode, one] of Object.entries(JSON.parse(readFileSync(messages, "utf8")))) {
  const event = webhooks.verify(one.body, one.headers, ["00".repeat(32), one.secret]);
  told[mode] = [event.type, event.payload.amount === "7.00"];
  for (const [body, secret] of [[one.body.replaceAll("7", "8"), one.secret], [one.body, "00".repeat(32)]]) {
    try {
      webhooks.verify(body, one.headers, secret);
    } catch (error) {
      forged += error instanceof WebhookVerificationError ? 1 : 0;
    }
  }
}
told.forged = forged === 4;
console.log(JSON.stringify(told));
