"""Notifications: delivers outbox events to merchants' webhook endpoints until they are acknowledged.

payload_format.py: the message. signing.py: encryption and signatures. fan_out.py: from the outbox to deliveries.
claims.py: leases and results. delivery.py: sending. endpoints.py: endpoints and their secrets. replay.py: sending
again. Source: Part A, Events; decisions, section 6; docs/webhooks.md.
"""
