// A shop with one product: node shop.mjs, then open the address that it prints. Node.js 18 or newer, no package.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";

const BASE = "https://gateway.example";
const TOKEN = "your access token";
const ENTITY_ID = "your entityId";
const PORT = Number(process.env.PORT ?? 9100);
const SHOP = `http://127.0.0.1:${PORT}`;
const [PRICE, CURRENCY] = ["18.00", "EUR"];
const PAID = /^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)/;
const orders = new Map(); // In a real shop: your database. The number of an order -> what became of it.

/** Calls the gateway. A declined payment or a fault is an answer, too: its result.code tells. */
async function ask(method, path, fields = {}) {
  const sent = new URLSearchParams({ entityId: ENTITY_ID, ...fields });
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const asked = method === "POST"
    ? fetch(BASE + path, { method, headers, body: sent })
    : fetch(`${BASE}${path}?${sent}`, { headers });
  return (await asked).json();
}

async function openCheckout() {
  const order = `order-${randomBytes(6).toString("hex")}`;
  const made = await ask("POST", "/v1/checkouts", {
    amount: PRICE, currency: CURRENCY, paymentType: "DB", integrity: "true",
    merchantTransactionId: order, shopperResultUrl: `${SHOP}/result`,
  });
  if (!made.id) return `<h1>Not possible now</h1><pre>${escape(JSON.stringify(made.result, null, 2))}</pre>`;
  orders.set(order, "open");
  const script = `${BASE}/v1/paymentWidgets.js?checkoutId=${made.id}`;
  return `<script src="${script}" integrity="${made.integrity}" crossorigin="anonymous"></script>
    <h1>${PRICE} ${CURRENCY}</h1><form action="${SHOP}/result" class="paymentWidgets" data-brands="VISA MASTER"></form>`;
}

async function showResult(path) {
  // The address comes from the shopper: ask no other path.
  if (!/^\/v1\/checkouts\/[0-9A-F]{32}-[0-9A-Za-z]{1,15}\/payment$/.test(path ?? "")) return "<h1>No such order</h1>";
  const found = await ask("GET", path);
  const order = found.merchantTransactionId ?? "";
  const { code } = found.result;
  const paid = PAID.test(code) && orders.has(order) && found.amount === PRICE && found.currency === CURRENCY;
  if (paid) orders.set(order, "paid"); // Ship it once: this page may be opened twice.
  const words = paid ? "Thank you" : code.startsWith("000.200") ? "We wait for your bank" : "That did not work";
  return `<h1>${words}</h1><p>${escape(order)} ${code}</p><a href="/">Back to the shop</a>`;
}

function escape(text) {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

async function answer(request) {
  const at = new URL(request.url, SHOP);
  if (request.method === "POST") return openCheckout();
  if (at.pathname === "/result") return showResult(at.searchParams.get("resourcePath"));
  if (at.pathname !== "/") return "<h1>No such page</h1>";
  return `<h1>Harbour mug</h1><p>${PRICE} ${CURRENCY}</p>
    <form method="post" action="/checkout"><button>Go to payment</button></form>`;
}

createServer(async (request, response) => {
  const body = await answer(request).catch((fault) => `<h1>Not possible now</h1><pre>${escape(String(fault))}</pre>`);
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  response.end(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>${body}</html>`);
}).listen(PORT, "127.0.0.1", () => console.log(`The shop: ${SHOP}  A card that pays: 4200 0000 0000 0000`));
