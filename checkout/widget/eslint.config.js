// Rules for all JavaScript of this repository: the widget's modules, the classic scripts of our own pages in static/,
// these tools, and what tests put into pages.
import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["checkout/widget/dist/**", "checkout/widget/node_modules/**"] },
  js.configs.recommended,
  {
    rules: {
      "no-unused-vars": ["error", { args: "after-used", caughtErrors: "none" }],
      "no-shadow": "off",
      "prefer-const": "error",
      "no-var": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
    },
  },
  {
    files: ["checkout/widget/src/**/*.js"],
    // The constants in capitals are put in by checkout/widget/build.py.
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: { ...globals.browser, RULES: "readonly", MORE_RULES: "readonly", MORE_SCRIPT: "readonly", CARD_BRANDS: "readonly", widgetOptions: "readonly", wpwlOptions: "readonly" } },
    rules: { "no-undef": "error", "no-duplicate-imports": "error" },
  },
  {
    files: ["checkout/widget/*.{js,mjs}"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.node },
  },
  {
    // Pieces of one script that tests put into a page, with the constants in capitals before them.
    files: ["tests/support/*.js"],
    languageOptions: {
      ecmaVersion: 2022, sourceType: "script",
      globals: {
        ...globals.browser, READY: "readonly", TOKEN: "readonly", VALIDATION: "readonly",
        provider: "readonly", ProviderSession: "readonly", sheet: "writable", token: "writable",
      },
    },
    rules: { "no-redeclare": "off", "no-unused-vars": ["error", { vars: "local" }] },
  },
  { files: ["static/**/*.js"], languageOptions: { ecmaVersion: 2022, sourceType: "script", globals: globals.browser } },
];
