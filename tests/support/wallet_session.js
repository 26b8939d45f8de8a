window.ProviderSession = class {
  static STATUS_SUCCESS = 0;
  static STATUS_FAILURE = 1;
  static canMakePayments() { return !READY.has("session"); }
  constructor(version, request) {
    if (!navigator.userActivation.isActive) throw new Error("no gesture");
    Object.assign(this, { version, request });
    ProviderSession.last = this;
  }
  begin() { this.onvalidatemerchant({ validationURL: VALIDATION }); }
  completeMerchantValidation(session) {
    this.session = session;
    sheet(`${this.request.total.label} ${this.request.total.amount}`, async () => this.onpaymentauthorized({ payment: {
      token: { paymentData: JSON.parse(await token()), paymentMethod: {}, transactionIdentifier: "1" },
      billingContact: { addressLines: ["Main 1"], locality: "Rome", postalCode: "00100", countryCode: "IT" } } }), () => this.oncancel({}));
  }
  completePayment(result) { ProviderSession.completed = result; }
  abort() { ProviderSession.aborted = true; }
};
