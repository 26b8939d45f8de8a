"""Merchants are told what happened: the outbox is handed to webhook endpoints, and delivered until they say so.

record.py: what is said. signing.py: how it is sealed or signed. fan_out.py: from the outbox to deliveries. claims.py:
whose turn it is, and how it went. delivery.py: sending. endpoints.py: who is told. replay.py: once more.
Source: Part A, Events; decisions, section 6; docs/webhooks.md.
"""
