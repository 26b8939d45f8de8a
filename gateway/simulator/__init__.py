"""The simulated bank, wallets and invoice provider: pages of another party, for tests."""
