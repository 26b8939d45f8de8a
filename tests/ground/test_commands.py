"""The pages of the repository hold what they promise: their commands run word for word, and answer as they show."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ground import commands
from tests.ground.conftest import OWN, ROOT, Stack

README = ROOT / "README.md"
PAGES = sorted(path for path in ROOT.glob("docs/**/*.md") if "```sh" in path.read_text(encoding="utf-8"))

pytestmark = [pytest.mark.xdist_group("whole-stack"), pytest.mark.timeout(900)]


@pytest.fixture
def reader(stack: Stack, tmp_path: Path) -> Path:
    """The folder a reader stands in: `var/` is what `make run` made."""
    (tmp_path / "var").symlink_to(stack.var)
    return tmp_path


def test_every_command_of_the_readme_runs_in_order_and_answers_as_shown(stack: Stack, reader: Path) -> None:
    """Word for word, as somebody who has just cloned it would."""
    answered = commands.run(README, reader, stack.environment)
    assert len(answered) >= 5
    compared = 0
    for block, said in answered:
        if block.shown is not None:
            assert commands.differs(block.shown, json.loads(said)) == []
            compared += 1
    assert compared == 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_the_docs_runs(stack: Stack, reader: Path, page: Path) -> None:
    """Blocks that are marked as commands; no answer is a refusal."""
    answered = commands.run(page, reader, stack.environment)
    assert answered
    assert not any("parameterErrors" in said for _, said in answered)


def test_the_first_payment_that_make_run_prints_is_the_one_of_the_readme(stack: Stack) -> None:
    """One set of names, one payment."""
    printed = stack.said[stack.said.index("\n. ") :].strip()
    paid = commands.blocks(README)[1].commands
    for words in re.findall(r'-[dH] "[^"]*"', printed):
        assert words in paid
    assert f". {stack.var}/demo.env" in printed
    assert '"$BASE/v1/payments"' in printed
    assert '"$BASE/v1/payments"' in paid


def test_one_set_of_names_stands_for_address_token_and_entity() -> None:
    """README, docs, pages, samples: $BASE, $TOKEN and $ENTITY_ID."""
    others = re.compile(r"\$(?:BASE_URL|URL|ENTITY|ACCESS|ACCESS_TOKEN|ID|PAYMENT)\b")
    pages = [README, *ROOT.glob("docs/**/*.md"), *ROOT.glob("templates/**/*.html"), *ROOT.glob("gateway/portal/*.py")]
    found = {path.name: others.findall(path.read_text(encoding="utf-8")) for path in pages}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_variables_are_readable_by_their_owner_only(stack: Stack) -> None:
    """They hold a token."""
    file = stack.var / "demo.env"
    assert file.stat().st_mode & 0o777 == 0o600
    show = '. "$0"; printf "%s " "$BASE" "$TOKEN" "$ENTITY_ID"'
    said = subprocess.run(["sh", "-euc", show, str(file)], capture_output=True, text=True, check=True).stdout
    demo = json.loads((stack.var / "demo.json").read_text())
    assert said.split() == [demo["base_url"], demo["access_token"], demo["entity_id"]]


@pytest.mark.parametrize("words", [["webhook_endpoint", "--url", "https://a b"], ["migrate"], ["tick", "--help"], []])
def test_a_command_without_the_settings_says_what_is_missing_and_how_it_is_run(words: list[str]) -> None:
    """No stack trace: a plain `python manage.py …` is what everybody types first."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=bare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "DATABASE_URL, DJANGO_SECRET_KEY" in done.stderr
    proposed = shlex.split(done.stderr.partition("`make run`:")[2].splitlines()[0])
    assert proposed == ["make", "manage", f"ARGS={shlex.join(words) or 'help'}"]


def test_a_command_in_a_python_without_django_says_so() -> None:
    """`python manage.py …` outside .venv."""
    script = "import sys; sys.modules['django'] = None; sys.argv = ['manage.py', 'migrate']; import manage; "
    done = subprocess.run(
        [sys.executable, "-c", script + "sys.exit(manage.main(sys.argv))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert 'make manage ARGS="migrate"' in done.stderr
    assert "Traceback" not in done.stderr
