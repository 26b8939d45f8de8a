"""A checkout, its webhook, settlement and dispute in the live environment, behind TLS. docs/running.md, Tried."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from config.launcher.var_folder import PROJECT_ROOT
from tests.running.live_shop import MODULE, PROGRAMS
from tests.running.machines import missing_tools

pytestmark = pytest.mark.processes


@pytest.mark.skipif(bool(missing_tools(PROGRAMS)), reason="needs root, a network of its own and HAProxy")
def test_a_live_shop_takes_a_payment_from_its_checkout_to_its_dispute() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "GATEWAY_"))}
    done = subprocess.run(
        [sys.executable, "-m", MODULE],
        cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-4000:]
    assert "5 of 5 as they must be" in done.stdout
