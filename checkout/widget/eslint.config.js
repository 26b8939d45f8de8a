// Rules for the JavaScript of this product: the widget's modules, and the classic scripts of our own pages in static/.
import js from "@eslint/js";
import globals from "globals";

export default [
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
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: { ...globals.browser, RULES: "readonly", CARD_BRANDS: "readonly" } },
    rules: { "no-undef": "error", "no-duplicate-imports": "error" },
  },
  { files: ["static/**/*.js"], languageOptions: { ecmaVersion: 2022, sourceType: "script", globals: globals.browser } },
];
