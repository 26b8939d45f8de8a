"""What a process of the fuzz begins with: Django is set up before anything of the product is imported."""

from __future__ import annotations

import logging
from typing import Any


def one(told: tuple[int, int, float]) -> Any:
    """Seed, number of requests and seconds, to what was found."""
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from tests.fuzz.run import Fuzz

    seed, number, seconds = told
    fuzz = Fuzz(seed)
    return fuzz.go(number=number, seconds=seconds)
