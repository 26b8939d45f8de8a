"""Payments: parse → begin → screen → authenticate → submit → complete → respond, the same for every caller.

Start at gateway.payments.process (first payments) and gateway.payments.follow_ups (captures, refunds, reversals).
"""
