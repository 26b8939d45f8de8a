// What the widget finds around it: constants that the build puts in, and names of the merchant's page.
declare const RULES: string;
declare const MORE_RULES: string;
/** The second script: SHA-384, as its name and as an integrity attribute. */
declare const MORE_SCRIPT: { digest: string; integrity: string };
declare const CARD_BRANDS: CardBrand[];

/** A row of the card brands' table: patterns of its numbers. */
interface CardBrand {
  code: string;
  /** Ranges of prefixes: "34 37 3528-3589". */
  ranges: string;
  /** Those by which the brand is told, where they are others. */
  detect?: string;
  lengths: number[];
  /** Its numbers have no check digit. */
  unchecked?: boolean;
  beside?: string[];
  afterScheme?: boolean;
}

/** What the page set: anything may stand there, so `checkOptions` judges it and each reader looks at what it takes. */
type PageOptions = Record<string, any>;

declare const widgetOptions: unknown;
declare const wpwlOptions: unknown;

interface Window {
  widgetOptions?: PageOptions;
  wpwlOptions?: PageOptions;
  wpwl?: Published;
  /** The second script as it stands for a moment, until the first one has taken it. */
  wpwlMore?(require: (name: string) => unknown, module: { exports: any }): void;
  hostedField?: { group: string; field: string; value(): string; fill(value: string): void };
}

/** `window.wpwl`: what a page may call. */
interface Published {
  checkout: { id: string };
  unload(): void;
  executePayment(containerId: string): void;
}
