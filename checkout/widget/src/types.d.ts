// Shapes that the widget's modules share. Read by tsc alone; nothing of it is built.
import type { gateway } from "./server.js";
import type { hostedField } from "./frames.js";
import type { openSheet } from "./more/sheet.js";
import type { speech } from "./texts.js";

export type Child = Node | string | null | undefined | false | 0 | "";
export type Children = (Child | Child[])[];
export type Fields = Record<string, string>;
export type Words = ReturnType<typeof speech>;
export type Gateway = ReturnType<typeof gateway>;
export type HostedField = ReturnType<typeof hostedField>;
export type Sheet = ReturnType<typeof openSheet>;

/** Attributes of an element that `h` makes; those with "on" are listeners. */
export interface Attributes {
  onclick?: (event: Event) => void;
  onsubmit?: (event: Event) => void;
  onchange?: (event: Event) => void;
  [name: string]: any;
}

/** The checkout this page is about. `registration`: it stores a card and takes no money. */
export interface Checkout {
  id: string;
  registration: boolean;
}

/** A way to pay as GET /v1/checkouts/{id}/config offers it. `cvv`: lengths its security code may have. */
export interface Brand {
  code: string;
  kind: string;
  label: string;
  cvv: number[];
  cvvOptional?: boolean;
}

/** What a brand is called by. */
export type BrandName = Pick<Brand, "code"> & Partial<Pick<Brand, "label">>;
/** A brand that has no card numbers. */
export type OtherBrand = Pick<Brand, "code" | "kind" | "label">;

/** A card or account that the shopper has stored at this merchant. */
export interface Saved {
  id: string;
  kind: string;
  brand: string;
  label?: string;
  last4: string;
  cvv: number[];
  cvvRequired?: boolean;
  expired?: boolean;
  expiryMonth?: string;
  expiryYear?: string;
}

export interface TestToken {
  token: string;
  last4: string;
  network?: string;
  outcome?: string;
}

export interface Wallet {
  provider?: Provider;
  testTokens?: TestToken[];
}

/** A wallet's provider as the channel's configuration has it; what else stands there is the provider's. */
export interface Provider {
  api: "client" | "session" | "request";
  name: string;
  method: string;
  token: string;
  script?: string;
  [setting: string]: any;
}

/** Body of GET /v1/checkouts/{id}/config. */
export interface Config {
  checkout: {
    amount: string; currency: string; kind: string; attempts: number; secondsLeft: number; paid?: boolean;
  };
  brands: Brand[];
  hidden?: { code: string; reason: string }[];
  registrations?: Saved[];
  wallets?: Record<string, Wallet>;
  billing: string[];
  held?: Held;
  /** Which brand of a co-badged card goes first. */
  brandOrder?: string[];
  /** Where the gateway's table of BINs says which brands a card carries. */
  cardBrands?: string;
  cvvRequired?: boolean;
  createRegistration?: boolean;
  threeDSecure?: boolean;
  test?: boolean;
  locale: string;
  dir: string;
  texts: Record<string, string>;
}

/** Parts of the amount that are held until the rest is paid; none of them: they are being given back. */
export interface Held {
  currency: string;
  rest: string;
  parts: { brand: string; label: string; last4: string; amount: string }[];
}

export interface ParameterError {
  name: string;
  message?: string;
}

export interface Redirect {
  url: string;
  method?: string;
  parameters?: { name: string; value: string }[];
}

/** Body of a checkout's state and of the posts to it. */
export interface State {
  state?: "open" | "processing" | "action" | "done" | "expired";
  attempts?: number;
  secondsLeft?: number;
  returnTo?: string;
  redirect?: Redirect;
  held?: Held;
  parameterErrors?: ParameterError[];
  result?: { code?: string; description?: string; parameterErrors?: ParameterError[] };
}

export interface Answer<Body> {
  status: number;
  body: Body;
}

/** What a frame says to the page, or the page to a frame; `t` names the kind, the rest is that kind's. */
export interface FrameMessage {
  t: string;
  [name: string]: any;
}

/** What a frame says of the digits in it; `reason` is why they are not valid. */
export interface FieldState {
  empty: boolean;
  valid: boolean;
  reason: string;
  codes: string[];
}

/** One field with its label and its place for an error. */
export interface Field {
  node: HTMLDivElement;
  name: string;
  control: HTMLElement;
  wrapper: HTMLDivElement;
  rename(text: string): void;
  fail(text?: string): void;
  focus(): void;
  /** The key of an error's text, or "". */
  judge(): string;
  values(): Fields;
  frame?: HostedField;
}

export interface TextField extends Field {
  input: HTMLInputElement;
}

/** A field in a frame of the gateway's: the card number or the security code. */
export interface FramedField extends Field {
  frame: HostedField;
  /** Give the frame its words and its looks. */
  dress(title: string, placeholder: string, more: object): void;
  /** The security code: lengths it may have, and whether it must be given. */
  want(lengths: number[], required: boolean): void;
}

/** One way to pay: its form, and how it is checked and sent. Optional members are those of some kinds alone. */
export interface Part {
  kind: string;
  title: string;
  badges: (SVGSVGElement | null)[];
  fields: Field[];
  container: HTMLElement;
  node: HTMLElement;
  form: HTMLFormElement;
  button: HTMLButtonElement;
  brand(): string;
  press(): void;
  check(): [Field, string][];
  send(common: Fields): Promise<Answer<State>>;
  shown?(): boolean;
  configure?(...given: any[]): void;
  refuse?(wrong: ParameterError[]): boolean;
  clearCvv?(): void;
  clear?(): void;
  look?(): void;
  detail?: string;
  radio?: HTMLInputElement;
  saved?: Saved;
  cvv?: FramedField;
  expiry?: TextField;
  /** A stored card: ask for its new expiry date. */
  renew?(): void;
  /** The bank said no to it, since the form stands. */
  declined?: boolean;
  keep?: HTMLInputElement;
  number?: FramedField;
  /** Whether the wallet's provider says that this shopper can pay. */
  ready?: Promise<boolean>;
  opensWindow?: boolean;
  popup?: Window | null;
  leaving?: boolean;
}

export interface CardPart extends Part {
  body: HTMLElement;
  number: FramedField;
  cvv: FramedField;
  expiry: TextField;
  holder: TextField;
  billing: Field[];
  keep: HTMLInputElement;
  configure(config: Config, own: Brand[]): void;
  remove(): void;
}

export interface SavedPart extends Part {
  saved: Saved;
  configure(): void;
  renew(): void;
}

/** What a wallet's sheet resolves with; `complete`: true, false, or null for an outcome that is not known. */
export interface SheetAnswer {
  token?: string | null;
  amount: string;
  address: Record<string, string | undefined>;
  complete(good: boolean | null): void;
  popup?: Window | null;
}

export interface ViewOptions {
  style: string;
  /** Draw the forms anew. */
  again?(): void;
  /** Fast checkout: make the checkout's id known to the page. */
  publishId?(id: string): void;
}

export type NoteKind = "error" | "info" | "done";
export interface NoteAction {
  label: string;
  run?: () => void;
}

/** One widget: what stands in the place of one form. */
export interface View {
  root: HTMLDivElement;
  body: HTMLDivElement;
  base: string;
  checkout: Checkout;
  words: Words;
  options: ViewOptions;
  place: HTMLElement;
  parts: Part[];
  sheets: Set<Sheet>;
  frames: HostedField[];
  timers: number[];
  busy: boolean;
  over: boolean;
  t: Words["t"];
  /** As `t`; "" stays "". */
  t2(key: string): string;
  gateway: Gateway;
  config: Config;
  /** Attempts to pay that the gateway had counted by its last answer; undefined if that did not say. */
  attempts: number | undefined;
  later(job: () => void, ms: number): number;
  announce(text: string): void;
  say(kind: NoteKind, text: string, action?: NoteAction | null, quiet?: boolean): void;
  unsay(): void;
  end(kind: "error" | "done", title: string, text?: string): void;
  expire(): void;
  error(name: string, message: string, more?: object): void;
  setBusy(part: Part | null, busy: boolean): void;
  leave(url: string): void;
  setSecondsLeft(seconds: number): void;
  focusFirst(): void;
  darken(): void;
  remove(): void;
  choose(part: Part): void;
  /** Where there are several ways to pay: what is offered after a decline of one. */
  another?(refused: Part, key: string): NoteAction | null;
  configured?: (() => void) | null;
  /** What is sent with every attempt, beside what the shopper fills in. */
  asked?: Fields;
  /** Of a form that asks for the rest of an amount: say that what was held is given back. */
  givenBack?: () => void;
  pressing?: boolean;
  leaving?: boolean;
  lost?: boolean;
  slow?: number;
  ticking?: number;
}
