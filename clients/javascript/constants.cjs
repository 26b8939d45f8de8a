"use strict";
// Generated from the OpenAPI document by `make clients`. Do not edit.

exports.MAP_PARAMETERS = new Set(["customParameters", "merchant.data", "overridePaymentType", "risk.parameters", "threeDSecure.schemeData"]);
exports.OUTCOME_PATTERNS = [
  ["approved", /^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)/],
  ["review", /^(000\.400\.0[^3]|000\.400\.100)/],
  ["pending", /^(000\.200)/],
  ["pending", /^(800\.400\.5|100\.400\.500)/],
  ["declined", /^(000\.400\.[1][0-9][1-9]|000\.400\.2)/],
  ["declined", /^(800\.[17]00|800\.800\.[123])/],
  ["declined", /^(900\.[1234]00|000\.400\.030)/],
  ["declined", /^(800\.[56]|999\.|600\.1|800\.800\.[84])/],
  ["declined", /^(100\.39[765])/],
  ["declined", /^(300\.100\.100)/],
  ["declined", /^(100\.400\.[0-3]|100\.380\.100|100\.380\.11|100\.380\.4|100\.380\.5)/],
  ["declined", /^(800\.400\.1)/],
  ["declined", /^(800\.400\.2|100\.390)/],
  ["declined", /^(800\.[32])/],
  ["declined", /^(800\.1[123456]0)/],
  ["declined", /^(600\.[23]|500\.[12]|800\.121)/],
  ["declined", /^(100\.[13]50)/],
  ["declined", /^(100\.250|100\.360)/],
  ["declined", /^(700\.[1345][05]0)/],
  ["declined", /^(200\.[123]|100\.[53][07]|800\.900|100\.[69]00\.500)/],
  ["declined", /^(100\.800)/],
  ["declined", /^(100\.[97]00)/],
  ["declined", /^(100\.100|100\.2[01])/],
  ["declined", /^(100\.55)/],
  ["declined", /^(100\.380\.[23]|100\.380\.101)/],
  ["chargeback", /^(000\.100\.2)/],
];
