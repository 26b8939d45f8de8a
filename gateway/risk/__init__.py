"""Risk: rule sets of merchants, their evaluation on a payment, and the card-testing guard."""
