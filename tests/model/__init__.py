"""A small model of a chain, written from the rulings alone, and a machine that compares the API with it, step by step.

Source: decisions, section 4; docs/decisions/0007; design goals R2.
"""
