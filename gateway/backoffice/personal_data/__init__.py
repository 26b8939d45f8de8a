"""Requests to erase a shopper's data, and exports of it."""
