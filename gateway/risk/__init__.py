"""Risk: what is known of a payment, the rules of a merchant's rule sets, and the guard against card testing."""
