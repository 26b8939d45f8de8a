// What the widget finds around it: constants that the build puts in, and names of the merchant's page.
declare const RULES: string;
declare const CARD_BRANDS: {
  code: string;
  ranges: [string, string][];
  detect: [string, string][];
  lengths: number[];
  luhn: boolean;
  beside: string[];
  afterScheme: boolean;
}[];

interface Window {
  widgetOptions?: Record<string, any>;
  wpwlOptions?: Record<string, any>;
  wpwl?: any;
  hostedField?: { group: string; field: string; value(): string; fill(value: string): void };
}
