"""The measure's own promises, on a small market: paired arms, the same for the same seed, no retry against a rule."""

from __future__ import annotations

import pytest

from reporting.simulator.market import MARKET_ACCOUNTS
from tests.market.arms import ARMS, ArmRun, make_purchases, run_market
from tests.market.report import compare_paired, main, render_table

COUNT, DAYS = 3_000, 60


@pytest.fixture(scope="module")
def runs() -> dict[str, ArmRun]:
    return {run.arm.name: run for run in run_market(22, COUNT, DAYS)}


def test_a_seed_makes_one_market_in_order_of_time() -> None:
    one, other = (list(make_purchases(seed, 400, 30)) for seed in (22, 22))
    assert one == other
    assert len(one) == 400
    assert [each.at for each in one] == sorted(each.at for each in one)
    assert list(make_purchases(23, 400, 30)) != one


def test_no_arm_makes_a_retry_against_a_rule(runs: dict[str, ArmRun]) -> None:
    assert {name: (run.tally.wrong, run.tally.over) for name, run in runs.items()} == dict.fromkeys(runs, (0, 0))
    assert all(run.tally.retries > 50 for run in runs.values())


def test_each_arm_does_what_it_is_named_after_and_nothing_else(runs: dict[str, ArmRun]) -> None:
    today = runs["today"].tally
    assert runs["soft decline → challenge"].tally.challenges > 2 * today.challenges
    assert runs["exemptions by rule"].tally.challenges < today.challenges
    assert runs["exemptions by rule"].tally.exempted > 0 == today.exempted
    assert runs["second acquirer"].tally.challenges == today.challenges
    assert runs["second acquirer"].tally.attempts > today.attempts
    won, before = runs["rest of a part with another card"].tally.won, today.won
    assert sum(won) > sum(before)
    assert all(now >= then for now, then in zip(won, before, strict=True)), "nothing is lost by it"
    charges = runs["today"].charges
    for name in ("network tokens", "account updater"):
        difference, _, _ = compare_paired(runs[name].tally.won, today.won, charges)
        assert difference > 0, name
        assert runs[name].tally.challenges == today.challenges
    assert "" in runs["account updater"]._updated.values(), "closed cards are not charged"
    assert not runs["today"].charges or runs["all together"].charges == runs["today"].charges


def test_all_ways_together_bring_more_than_today(runs: dict[str, ArmRun]) -> None:
    _, low, _ = compare_paired(runs["all together"].tally.won, runs["today"].tally.won, range(1, COUNT + 1))
    assert low > 5
    _, low, _ = compare_paired(runs["second acquirer"].tally.won, runs["today"].tally.won, range(1, COUNT + 1))
    assert low >= 0


def test_a_paired_difference_counts_purchases_that_one_arm_alone_won() -> None:
    difference, low, high = compare_paired(bytearray([0, 1, 1, 0, 1]), bytearray([0, 1, 0, 1, 0]), [1, 2, 3, 4])
    assert difference == pytest.approx(25)
    assert low < 25 < high
    assert compare_paired(bytearray([0, 1]), bytearray([0, 1]), [1]) == (0, 0, 0)


def test_the_command_prints_a_row_for_each_arm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--payments", "300", "--months", "1"]) == 0
    printed = capsys.readouterr().out
    assert [arm.name for arm in ARMS if f"| {arm.name} |" in printed] == [arm.name for arm in ARMS]
    with pytest.raises(SystemExit):
        main(["--payments", "0"])


def test_the_table_compares_with_the_first_arm(runs: dict[str, ArmRun]) -> None:
    table = render_table(list(runs.values()), COUNT, runs["today"].charges)
    assert table.splitlines()[2].startswith("| today |")
    assert len(table.splitlines()) == 2 + len(ARMS)
    assert len(MARKET_ACCOUNTS) == 2
