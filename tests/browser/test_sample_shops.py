"""The sample shops of `make shop` (docs/sample-shop.md) sell a mug in a real browser, in each language whose runtime is
here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from config.sample_shops import SHOP_COMMANDS, SHOP_PLACEHOLDERS, KeysError, main, read_keys
from gateway.models import Payment
from tests.browser.conftest import picture
from tests.browser.widget import Widget
from tests.support.fixtures import Shop
from tests.support.ports import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Page]


def wait_until_it_listens(process: subprocess.Popen[bytes], address: str) -> None:
    while process.poll() is None:
        with suppress(URLError), urlopen(address):
            return
        time.sleep(0.1)
    raise AssertionError("the shop has ended")


@contextmanager
def running(file: Path, port: int) -> Iterator[str]:
    command = SHOP_COMMANDS[file.name].format(path=file).replace("9100", str(port)).split()
    if command[0] == "python3":
        command[0] = sys.executable
    elif shutil.which(command[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"{command[0]} is not installed here")
    process = subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, cwd=file.parent)
    try:
        wait_until_it_listens(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def written(site: str, committed: Shop, tmp_path: Path) -> Path:
    keys = tmp_path / "demo.env"
    entity = committed.channel.entity_id
    keys.write_text(f"export BASE={site}\nexport TOKEN='{committed.api.token}'\nexport ENTITY_ID={entity}\n")
    assert main(["--env", str(keys), "--out", str(tmp_path / "shop")]) == 0
    return tmp_path / "shop"


@pytest.mark.parametrize("name", SHOP_COMMANDS)
def test_a_mug_is_sold(open_page: Open, written: Path, committed: Shop, name: str) -> None:
    file = written / name
    assert file.stat().st_mode & 0o777 == 0o600
    assert not [text for text in SHOP_PLACEHOLDERS.values() if text in file.read_text()]
    with running(file, free_port()) as address:
        page = open_page()
        page.goto(address)
        page.get_by_role("button", name="Go to payment").click()
        Widget(page=page).ready().fill().press()
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        expect(page.get_by_text("000.100.110")).to_be_visible()
        picture(page, f"shop-{name}")
        page.goto(f"{address}/result?resourcePath=/v1/payments/{'0' * 32}")
        expect(page.get_by_role("heading", name="No such order")).to_be_visible()
    paid = Payment.objects.get()
    assert (paid.amount, paid.currency, paid.channel_id) == (18, "EUR", committed.channel.pk)


def test_keys_that_are_not_there_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--env", str(tmp_path / "none.env")]) == 1
    assert "make run" in capsys.readouterr().err
    half = tmp_path / "half.env"
    half.write_text("export BASE=http://127.0.0.1:8000\nexport TOKEN=\n")
    with pytest.raises(KeysError, match="TOKEN, ENTITY_ID"):
        read_keys(half)
