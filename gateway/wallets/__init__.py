"""Mobile wallets: decrypts payment tokens with the channel's own keys.

Pure (text and keys in, card data out): ``token`` and ``strict_parsing`` (values, limits, parsing), ``wallet1``,
``wallet2``, ``wallet3`` (one published format family each) and ``formats`` (formats by wallet). ``channel_tokens`` has
the rows: a channel's keys and used tokens. ``token_factory`` and ``sandbox_tokens`` make test keys and tokens. Source:
Part A, Mobile wallets; rulings D29, D32.
"""
