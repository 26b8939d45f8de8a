"""The desk: what people are shown of payments and do to them by hand. It asks gateway.payments, never the reverse."""
