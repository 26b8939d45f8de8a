"""One PostgreSQL for the whole run, started before Django reads its settings.

The process that you started starts it and hands its address to pytest-xdist's workers in the environment;
each worker makes a database of its own in it. TEST_DATABASE_URL names another server, which is then used.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest
from django.conf import settings
from django.test import TransactionTestCase
from pytest_rerunfailures import StatusDB

from config.launcher.postgres import Postgres
from tests.support.browser import install as install_browser
from tests.support.static_files import read_static_files_once

gc.disable()
"""Until all tests are found: nearly all of it stays, and looking for garbage took a fifth of the time."""
FAST = "--fast" in sys.argv
"""Whether only tests without a database run: then none is started."""
_var: Path | None = None
_postgres: Postgres | None = None

if "PYTEST_XDIST_WORKER" not in os.environ:
    _var = Path(tempfile.mkdtemp(prefix="tollhouse-tests-"))
    _var.chmod(0o711)  # under root the server is another user and has to pass through
    if not FAST:
        _postgres = Postgres(_var, url=os.environ.get("TEST_DATABASE_URL") or None, durable=False)
    os.environ.update(
        {
            "DATABASE_URL": _postgres.start() if _postgres else "postgresql://none@127.0.0.1:1/none",
            "CELERY_BROKER_URL": "memory://",
            "GATEWAY_JOB_LANES": "1",  # a thread sees only what was committed, and most tests never commit
            "DJANGO_SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "GATEWAY_BASE_URL": "http://testserver",
            "GATEWAY_ENVIRONMENT": "test",
            "GATEWAY_PASSWORD_CHECKS_PER_MINUTE": "100000",  # one process makes the sign-ins of many tests
            "GATEWAY_SELF_TEST": "false",  # a test that moves the clock runs all timers
            "GATEWAY_VAULT_KEYSET_FILE": str(_var / "vault.json"),
            "TESTS_OWN_POSTGRES": "" if os.environ.get("TEST_DATABASE_URL") else "yes",
            "DJANGO_ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
        }
    )

django.setup()
install_browser()
read_static_files_once()
# Django's own hasher takes half a second for a password, on purpose. Read when the first password is hashed.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# The same examples in every run, and no clock: a test that passed here passes everywhere. The long runs that look for
# new examples are started by hand (tests/fuzz, tests/model).
# A mutant has died at the first example that fails: looking for a smaller one took minutes of each trial.
_PHASES = [
    phase for phase in hypothesis.Phase if phase.name != "shrink" or "TOLLHOUSE_MUTANT_DATABASE" not in os.environ
]
hypothesis.settings.register_profile("tollhouse", deadline=None, derandomize=True, database=None, phases=_PHASES)
hypothesis.settings.load_profile("tollhouse")

pytest_plugins = ["tests.support.fixtures", "tests.support.stub"]


APPEND_ONLY = (
    "gateway_paymentevent",
    "gateway_archivedpayment",
    "gateway_auditentry",
    "gateway_auditseal",
    "chargebacks_caseevent",
)
"""Tables that the product never empties. Tests that commit are cleaned up after by emptying all there are, so the
triggers sleep here; tests/gateway/payments/test_store.py wakes them."""


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None, django_db_blocker: Any) -> None:
    """Also copy the test database, on a server of the run's own."""
    from tests.support.template import copy_test_database_from_template

    if os.environ["TESTS_OWN_POSTGRES"]:
        with django_db_blocker.unblock():
            copy_test_database_from_template()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    import pgtrigger
    from django.db import connection

    from gateway.db.guards import NEVER_EMPTIED_GUARD
    from tests.support.emptying import Emptying

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for model, trigger in pgtrigger.registered():
            if trigger.name == NEVER_EMPTIED_GUARD:
                trigger.disable(model)
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        may_leave_out_triggers = cursor.fetchone()[0]
    emptying = Emptying()
    with pytest.MonkeyPatch.context() as patch:
        if may_leave_out_triggers:
            patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: emptying.empty())
        yield
    emptying.close()


SLOW_FOLDERS = frozenset(
    {"browser", "canary", "external", "faults", "fuzz", "ground", "mutants", "plugins", "release", "running"}
)
SLOW_FIXTURES = frozenset(
    {"django_db", "db", "transactional_db", "django_db_setup", "live_server", "acquirer", "iso_host", "processes"}
)
"""What ``--fast`` leaves out: folders whose tests start something, fixtures and marks of a database or a host."""
COMMITTING_FIXTURES = frozenset({"transactional_db", "live_server", "django_db_reset_sequences"})
OF_OTHERS = frozenset({"browser", "canary", "ground", "running"})
"""Folders whose tests drive a browser, or processes that the machine may stop for a while whenever it likes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only tests without a database, a browser or another process")


_ALL_WITH_DATABASE = re.compile(r"^pytestmark = .*\b(django_db|processes)\b", re.M)
"""A module all of whose tests have a database, or start one."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--fast`` slow folders are not even imported, nor modules all of whose tests want a database: importing
    and collecting them took longer than running the others."""
    if not config.getoption("--fast"):
        return None
    if collection_path.is_dir():
        slow = collection_path.parent == Path(__file__).parent and collection_path.name in SLOW_FOLDERS
    else:
        slow = bool(_ALL_WITH_DATABASE.search(collection_path.read_text(encoding="utf-8")))
    return True if slow else None


@cache
def _folders(path: Path) -> frozenset[str]:
    """Names of the folders below tests in which a file of tests is."""
    return frozenset(path.relative_to(Path(__file__).parent).parts)


def _is_fast(item: pytest.Item) -> bool:
    """Whether a test needs neither a database nor anything that has to be started for it."""
    names = {*getattr(item, "fixturenames", ()), *(mark.name for mark in item.iter_markers())}
    if issubclass(getattr(item, "cls", None) or object, TransactionTestCase):  # of Django: its fixtures come later
        return False
    return not (SLOW_FOLDERS.intersection(_folders(item.path)) or SLOW_FIXTURES.intersection(names))


def _commits(item: pytest.Item) -> bool:
    """Whether a test commits. Those come after all others, as pytest-django has them: what they leave behind in a
    database, such as its sequences, partitions and statistics, meets no test that relies on a new one."""
    mark = item.get_closest_marker("django_db")
    return bool(mark is not None and mark.kwargs.get("transaction")) or not COMMITTING_FIXTURES.isdisjoint(
        getattr(item, "fixturenames", ())
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """A worker keeps to itself how often a test was tried. The plug-in for second tries has it ask the process that
    shares out before each test, by a socket on which one small message waits until the one before is acknowledged: up
    to 40 ms a test, of which a run with CI set has 31,000. The answer matters only for a test at which a worker died,
    which --dist loadgroup gives to no other worker anyway."""
    if hasattr(config, "workerinput"):
        config.failures_db = StatusDB()


def pytest_sessionstart(session: pytest.Session) -> None:
    """The process that only hands tests to its workers finds none itself."""
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files in the order they were sorted in: the slow ones first, so that no worker has one left at the end."""
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.support.work_units import FileScheduling

    config.option.loadscopereorder = False
    return FileScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of OF_OTHERS get one more try, where a change is taken in all do, and are named at the end if they took it:
    a rule that does not hold fails twice."""
    if config.getoption("--fast"):
        slow = [item for item in items if not _is_fast(item)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if _is_fast(item)]
    elif "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (_commits(item), SLOW_FOLDERS.isdisjoint(_folders(item.path))))
    for item in items:
        if os.environ.get("CI") or OF_OTHERS.intersection(_folders(item.path)):
            item.add_marker(pytest.mark.flaky(reruns=1))


MAX_SECOND_TRIES = 3
"""Tests outside of OF_OTHERS that a run with CI set forgives: one that fails by chance now and then is looked for among
those that are named; more of them at once are no chance."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In the process that prints the report."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    tried = {report.nodeid for report in reporter.stats.get("rerun", ())}
    again = sorted(name for name in tried if not OF_OTHERS.intersection(name.partition("::")[0].split("/")))
    if len(again) > MAX_SECOND_TRIES and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"More than {MAX_SECOND_TRIES} tests needed a second try: {', '.join(again)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, among what comes new."""
    gc.freeze()
    gc.enable()


def pytest_runtest_teardown() -> None:
    """Reset the language: a request in German leaves it set in its thread."""
    from django.utils import translation

    translation.deactivate()


def pytest_unconfigure() -> None:
    """Also called after Ctrl-C. A killed run needs nothing: the server dies with it."""
    if _postgres is not None:
        _postgres.stop()
    if _var is not None:
        data = _var / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(_var, ignore_errors=True)
