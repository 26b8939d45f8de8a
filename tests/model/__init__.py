"""Small models of a chain and of parts of a checkout, written from the rulings alone, and machines that compare the API
with them, step by step.

Source: decisions, section 4; docs/decisions/0007; design goals R2.
"""
