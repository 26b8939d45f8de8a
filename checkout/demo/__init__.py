"""The demo shop: an example merchant, in the test environment only."""
