"""Mutation testing: change the product in one small place, and see whether the tests that mirror that place fail.

``make mutants ARGS="--seed 7 --sample 100"``; what a run found, and what lives with its reason, is in docs/mutants.md.
"""
