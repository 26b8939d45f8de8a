"""Bank direct debits: collections go out as pain.008 files, refunds as pain.001, and what the bank tells comes in."""
