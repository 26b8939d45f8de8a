"""Mobile wallets: encrypted payment tokens are opened here, with the channel's own keys.

``token`` and ``reading`` (values, limits, strict reading), ``wallet1``, ``wallet2`` and ``wallet3`` (one published
format family each) and ``formats`` (which wallet speaks which format) are pure: text and keys in, card data out.
``channels`` knows the rows: keys of a channel, tokens that were seen. ``making`` makes keys and tokens to try with.
Source: Part A, Mobile wallets; rulings D29, D32.
"""
