"""What a worker does with webhooks, as a process of its own: it is woken every few milliseconds, as wake-ups do.

python -m tests.benchmarks.teller [--every 0.02]      DJANGO_SETTINGS_MODULE=config.settings
"""

from __future__ import annotations

import argparse
import time

import django


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=float, default=0.02)
    every = parser.parse_args().every
    django.setup()
    from gateway.payments.webhook_payloads import TIMER

    while True:
        if not TIMER.run():
            time.sleep(every)


if __name__ == "__main__":
    main()
