"""SEPA direct debits: collections are sent as pain.008 files, refunds as pain.001; the bank's messages are imported."""
