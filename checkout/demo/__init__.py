"""The demo shop: a merchant like any other, in the test environment only."""
