"""The shopper's pages: where a redirect leads, and the way back to the merchant."""
