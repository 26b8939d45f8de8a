"""The smallest Django project that takes the same request and keeps one row: what the product is compared with."""
