// Real wallets: a provider's own sheet, opened as the gateway's configuration of the channel says. Each way has `ready`
// (may its button stand?) and `open`, which resolves with null when the shopper closed the sheet, else with the token,
// the total that the shopper saw, the sheet's billing address if it gave one, and `complete`, which tells the sheet how
// it went: true, false, or null for nobody knows yet.
import { h, warn } from "../shared.js";
import { SHEET_OF, walletOptions } from "./wishes.js";
/** @import { OtherBrand, ParameterError, Provider, SheetAnswer, View } from "../types.js" */

const scripts = new Map();

/** @param {string} address */
const policyWords = (address) => `does the page's Content-Security-Policy name ${new URL(address).origin}?`;

/** @param {string | undefined} src */
function loadScript(src) {
  if (!src) return Promise.resolve();
  if (!scripts.has(src)) {
    scripts.set(src, new Promise((resolve, reject) => document.head.append(h("script", {
      src, onload: resolve,
      onerror: () => {
        scripts.delete(src);
        reject(new Error(`${src} did not load: ${policyWords(src)}`));
      },
    }))));
  }
  return scripts.get(src);
}

// What the provider's script put into the page, by its dotted name.
/** @param {string} name */
function offeredAs(name) {
  const found = name.split(".").reduce((at, part) => (at == null ? at : at[part]), /** @type {any} */ (window));
  if (typeof found !== "function") throw new Error(`there is no ${name} in this page`);
  return found;
}

/** @param {unknown} one */
const isFunction = (one) => typeof one === "function";

// The client of wallet 2's provider. The page's callbacks are its own: what they answer goes to the sheet as it is.
/** @param {OtherBrand} brand @param {Provider} provider @param {{ amount?: string }} agreed */
function clientSetUp(brand, provider, agreed) {
  const wishes = walletOptions(brand.code);
  const { parameters, type } = provider.tokenization;
  const method = {
    type: "CARD",
    parameters: { allowedAuthMethods: provider.authMethods, allowedCardNetworks: provider.networks },
  };
  const merchantInfo = {
    merchantId: wishes.merchantId || provider.merchantId, merchantName: wishes.merchantName || provider.merchantName,
  };
  /** @type {Record<string, (given: any) => unknown>} */
  const callbacks = {};
  if (isFunction(wishes.onPaymentDataChanged)) {
    callbacks.onPaymentDataChanged = async (/** @type {any} */ changed) => {
      const update = (await wishes.onPaymentDataChanged(changed)) || {};
      agreed.amount = (update.newTransactionInfo || {}).totalPrice || agreed.amount;
      return update;
    };
  }
  if (isFunction(wishes.onPaymentAuthorized)) callbacks.onPaymentAuthorized = wishes.onPaymentAuthorized;
  const own = offeredAs(provider.name);
  const client = new own({
    environment: provider.environment, merchantInfo, ...(Object.keys(callbacks).length && { paymentDataCallbacks: callbacks }),
  });
  const tokenization = {
    type, parameters: { ...parameters, ...(wishes.gatewayMerchantId && { gatewayMerchantId: wishes.gatewayMerchantId }) },
  };
  const intents = wishes.callbackIntents || [
    callbacks.onPaymentDataChanged && (wishes.shippingAddressRequired ? "SHIPPING_ADDRESS" : "PAYMENT_METHOD"),
    callbacks.onPaymentAuthorized && "PAYMENT_AUTHORIZATION",
  ].filter(Boolean);
  return { client, method, merchantInfo, tokenization, wishes, ...(intents.length && { intents }) };
}

const VERSION = { apiVersion: 2, apiVersionMinor: 0 };
/**
 * @type {Record<Provider["api"], {
 *   ready(view: View, brand: OtherBrand, provider: Provider): unknown,
 *   open(view: View, brand: OtherBrand, provider: Provider, agreed: { amount: string, currency: string }): Promise<SheetAnswer | null>,
 * }>}
 */
const PROVIDERS = {
  client: {
    ready: async (view, brand, provider) => {
      const { client, method } = clientSetUp(brand, provider, {});
      return (await client.isReadyToPay({ ...VERSION, allowedPaymentMethods: [method] })).result;
    },
    open: async (view, brand, provider, { amount, currency }) => {
      const agreed = { amount };
      const { client, method, merchantInfo, tokenization, wishes, intents } = clientSetUp(brand, provider, agreed);
      const address = wishes.billingAddressRequired === true || view.config.billing.length > 0;
      const data = await client.loadPaymentData({
        ...VERSION, merchantInfo,
        allowedPaymentMethods: [{
          ...method, tokenizationSpecification: tokenization,
          parameters: {
            ...method.parameters, billingAddressRequired: address,
            ...(address && { billingAddressParameters: wishes.billingAddressParameters || { format: "FULL" } }),
          },
        }],
        transactionInfo: {
          totalPriceStatus: wishes.prefetchPriceStatus || "FINAL", totalPrice: amount, currencyCode: currency,
          countryCode: wishes.countryCode || provider.countryCode,
          ...(wishes.displayItems && { displayItems: wishes.displayItems, totalPriceLabel: view.t("total") }),
        },
        ...(intents && { callbackIntents: intents }),
        ...(wishes.shippingAddressRequired && { shippingAddressRequired: true, shippingAddressParameters: wishes.shippingAddressParameters }),
        ...(wishes.emailRequired && { emailRequired: true }),
      }).catch((/** @type {any} */ fault) => {
        if (fault && fault.statusCode === "CANCELED") return null;
        throw new Error((fault && (fault.statusMessage || fault.statusCode)) || fault);
      });
      if (!data) return null;
      const { tokenizationData, info } = data.paymentMethodData;
      const at = (info && info.billingAddress) || {};
      return {
        token: tokenizationData.token, amount: agreed.amount, complete: () => {},
        address: { street1: at.address1, street2: at.address2, city: at.locality, postcode: at.postalCode, country: at.countryCode, state: at.administrativeArea },
      };
    },
  },
  session: {
    ready: (view, brand, provider) => offeredAs(provider.name).canMakePayments(),
    open: (view, brand, provider, { amount, currency }) => new Promise((resolve, reject) => {
      const wishes = walletOptions(brand.code);
      const own = offeredAs(provider.name);
      const session = new own(provider.version, {
        countryCode: wishes.countryCode || provider.countryCode, currencyCode: currency,
        supportedNetworks: provider.networks, merchantCapabilities: provider.capabilities,
        total: { label: wishes.merchantName || provider.displayName, amount, type: "final" },
        ...(wishes.displayItems && { lineItems: wishes.displayItems.map((/** @type {any} */ one) => ({ label: one.label, amount: one.price })) }),
        ...((wishes.billingAddressRequired || view.config.billing.length > 0) && { requiredBillingContactFields: ["postalAddress"] }),
      });
      session.onvalidatemerchant = async (/** @type {any} */ { validationURL }) => {
        const { status, body } = await view.gateway.vouch(brand.code, validationURL).catch((fault) => ({ status: 0, body: fault }));
        if (status === 200) return session.completeMerchantValidation(body.session);
        session.abort();
        const errors = (body.result && body.result.parameterErrors) || [];
        reject(new Error(`the provider was not asked: ${errors.map((/** @type {ParameterError} */ one) => `${one.name} ${one.message}`).join("; ") || (body.result || body).description || body.message}`));
      };
      session.oncancel = () => resolve(null);
      session.onpaymentauthorized = async (/** @type {any} */ { payment }) => {
        /** @param {boolean | null} good */
        const complete = (good) => (good === null ? session.abort() : session.completePayment({ status: good ? own.STATUS_SUCCESS : own.STATUS_FAILURE }));
        if (isFunction(wishes.onPaymentAuthorized)) {
          const verdict = (await Promise.resolve(wishes.onPaymentAuthorized(payment)).catch(() => null)) || {};
          if (verdict.transactionState !== "SUCCESS") {
            complete(false);
            return reject(new Error(`${SHEET_OF[brand.code]}.onPaymentAuthorized did not answer SUCCESS`));
          }
        }
        const at = payment.billingContact || {};
        const [street1, street2] = at.addressLines || [];
        resolve({
          token: JSON.stringify(payment.token.paymentData), amount, complete,
          address: { street1, street2, city: at.locality, postcode: at.postalCode, country: at.countryCode, state: at.administrativeArea },
        });
      };
      session.begin();
    }),
  },
  request: {
    ready: (view, brand, provider) => requestOf(view, brand, provider).canMakePayment(),
    open: async (view, brand, provider, { amount }) => {
      const answer = await requestOf(view, brand, provider).show().catch((fault) => {
        if (fault.name === "AbortError") return null;
        throw new Error(`${fault.message} (${policyWords(provider.method)})`);
      });
      if (!answer) return null;
      const token = provider.token.split(".").reduce((at, name) => (at || {})[name], /** @type {any} */ (answer.details));
      return {
        token: typeof token === "string" ? token : JSON.stringify(token), amount, address: {},
        complete: (good) => answer.complete(good === null ? "unknown" : good ? "success" : "fail"),
      };
    },
  },
};

/** @param {View} view @param {OtherBrand} brand @param {Provider} provider */
function requestOf(view, brand, provider) {
  const { amount, currency } = view.config.checkout;
  const total = { label: walletOptions(brand.code).merchantName || view.t("total"), amount: { currency, value: amount } };
  return new PaymentRequest([{ supportedMethods: provider.method, data: provider.data || {} }], { total });
}

// Whether the shopper of this browser can pay with it; never rejects.
/** @param {View} view @param {OtherBrand} brand @param {Provider} provider */
export async function providerReady(view, brand, provider) {
  try {
    await loadScript(provider.script);
    return Boolean(await PROVIDERS[provider.api].ready(view, brand, provider));
  } catch (fault) {
    warn(`${brand.code} is left out: ${(fault && fault.message) || fault}`);
    return false;
  }
}

/** @param {View} view @param {OtherBrand} brand @param {Provider} provider */
export async function providerSheet(view, brand, provider) {
  await loadScript(provider.script);
  return PROVIDERS[provider.api].open(view, brand, provider, view.config.checkout);
}
