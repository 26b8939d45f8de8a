"""What tests share: a merchant to test with, a small HTTP client, the cards, threads with connections of their own."""
