"""`python -m tests.running --only`: what no trial is called is refused with the names that there are."""

from __future__ import annotations

import sys

import pytest

from tests.running import __main__ as running


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--only", "an_upgrad_"], ("a_killed_node", "an_upgrade", "a_restore", "a_live_start")),
        (["--web-only", "--only", "an_upgrade"], ("a_killed_node", "a_live_start")),
        (["--cluster", "--only", "a_switch_over"], ("a switch-over", "etcd dies", "the port for reading")),
    ],
)
def test_a_trial_that_does_not_exist_is_an_error_that_names_the_trials(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "argv", ["python -m tests.running", *words])
    for may_not_run in ("_all", "try_cluster", "run_inside"):
        monkeypatch.setattr(running, may_not_run, None)
    with pytest.raises(SystemExit) as ended:
        running.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"--only {words[-1]}: no trial has this in its name" in said
    for name in names:
        assert name in said
