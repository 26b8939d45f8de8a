"""The simulated bank, wallets and invoice house as a shopper sees them: pages of another party, for tests."""
