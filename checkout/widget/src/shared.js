// What the second script (more/) takes of the first one. Nothing else goes from one to the other.
export { cvvField, refuseFields, secretName } from "./card.js";
export { ICONS, addMoreRules, addRules, freshId, h, icon, wait } from "./dom.js";
export { billingFields, billingSet, countryField, expiryField, plainDigits, shopperParameters, textField } from "./fields.js";
export { back, commonFields, follow, submit } from "./follow.js";
export { lookOf } from "./frames.js";
export { mark } from "./marks.js";
export { callPage } from "./options.js";
export { gateway } from "./server.js";
export { baseOf, checkoutOf, complain, pageOptions, warn } from "./start.js";
export { isolated } from "./texts.js";
export { makeView, newContainer, noBrands, paidBefore, payButton, payGroup } from "./view.js";
