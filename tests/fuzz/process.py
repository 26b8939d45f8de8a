"""What a process of the fuzz begins with: Django is set up before anything of the product is imported."""

from __future__ import annotations

import logging
import signal
from multiprocessing.queues import Queue
from typing import Any


def fuzz_in_process(seed: int, number: int, seconds: float, results: Queue[Any]) -> None:
    """Run a share of the requests. Puts (seed, what was found so far) on ``results`` now and then, and at the end;
    SIGTERM and SIGINT end it early."""
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from tests.fuzz.run import Fuzz

    fuzz = Fuzz(seed)
    for number_of_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number_of_signal, lambda *_: fuzz.stop())
    fuzz.go(number=number, seconds=seconds, report=lambda found: results.put((seed, found)))
