"""Processors that others wrote, under fire: their load, their faults, and the comparison of their books with ours."""
