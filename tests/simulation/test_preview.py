"""What a change of a key's policy is told to do is what it does: previews against the compiled core, kind by kind."""

from __future__ import annotations

import math
import os
import statistics

import pytest

from fila.v1 import admin_pb2 as pb
from fila_server.errors import Invalid
from fila_server.operations.forecast import Rivals, Situation, Unknown, forecast
from fila_server.operations.preview import rival_weight, under
from tests.simulation.forecasts import Outcome
from tests.simulation.previews import measure
from tests.simulation.test_forecast import (
    COVERAGE_LEAST,
    COVERAGE_MOST,
    FITTED_ON,
    likely_s,
    looks,
    situation,
)

pytestmark = pytest.mark.timeout(180)  # its loads are simulated once, before the first test

SEEDS = range(
    3001, 3001 + int(os.environ.get("FILA_FORECAST_SEEDS", "20" if os.environ.get("FILA_SOAK") else "1"))
)
"""None of the loads that the forecast's figures were chosen by, nor of those that the forecast is judged on."""
KINDS = ("weight", "rate", "cap", "resume")


def policy(**change) -> pb.SetKeyPolicyRequest:
    return pb.SetKeyPolicyRequest(fairness_key="acme", **change)


# --- the situation under a change -----------------------------------------------------------


def test_what_is_left_out_stays():
    now = situation(weight=3, cap=2, own_rate=5.0, own_tokens=1.0, own_burst=9.0)

    assert under(now, policy()) == now


def test_zero_takes_an_operators_weight_away_and_leaves_the_policys():
    now = situation(weight=9, weight_by_policy=3)

    assert under(now, policy(weight=0)).weight == 3


def test_a_new_rates_bucket_is_full_and_a_changed_ones_keeps_what_fits():
    fresh = under(situation(), policy(rate_per_second=4.0))
    smaller = under(
        situation(own_rate=10.0, own_tokens=8.0, own_burst=10.0), policy(rate_per_second=5.0, burst=2.0)
    )
    gone = under(situation(own_rate=10.0, own_tokens=8.0, own_burst=10.0), policy(rate_per_second=0.0))

    assert (fresh.own_rate, fresh.own_tokens, fresh.own_burst) == (4.0, 4.0, 4.0)
    assert (smaller.own_rate, smaller.own_tokens) == (5.0, 2.0)
    assert gone.own_rate == 0


def test_a_burst_without_a_rate_is_refused_as_the_change_would_be():
    with pytest.raises(Invalid, match="needs a rate"):
        under(situation(), policy(burst=5.0))


def test_a_key_that_is_resumed_comes_behind_everybodys_turn():
    now = situation(is_paused=True, is_aside=True, rivals=(Rivals(weight=49, work=1e9),))

    resumed = under(now, policy(paused=False))

    assert forecast(now, looks()) is Unknown.PAUSED
    assert likely_s(forecast(resumed, looks(per_s=50))) == pytest.approx(1.0)


def test_resuming_a_key_of_a_paused_queue_resumes_nothing():
    now = situation(is_paused=True, is_aside=True)

    assert under(now, policy(paused=False), channel_is_paused=True).is_paused


def test_a_heavier_key_saves_for_its_first_message_in_fewer_rounds():
    assert under(situation(rounds_to_save=9), policy(weight=3)).rounds_to_save == 3


def test_a_rival_weighs_no_more_than_its_cap_and_its_rate_let_it():
    free = situation(weight=8, held=20)
    assert rival_weight(free, 8.0, 50_000) == 8
    assert rival_weight(under(free, policy(paused=True)), 8.0, 50_000) == 0
    # A fifth of what is sent is a quarter of what the others are sent.
    assert rival_weight(under(free, policy(max_in_flight=4)), 8.0, 50_000) == pytest.approx(2)
    assert rival_weight(under(free, policy(rate_per_second=10.0)), 8.0, 50_000) == pytest.approx(2)


def test_the_first_message_of_a_key_at_its_cap_waits_for_its_own_to_be_finished():
    capped = Situation(backlog=9, consumers=4, cap=1, own_held=4, held=20)

    assert likely_s(forecast(capped, looks(per_s=50))) == pytest.approx(0.4)


# --- what came of it ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[Outcome, Outcome, Outcome]]:
    """By kind of change: the key itself, those who lose, and what was told for no change."""
    found = {}
    for kind in KINDS:
        sums = (Outcome(), Outcome(), Outcome())
        for seed in SEEDS:
            load = measure(kind, seed)
            for total, part in zip(sums, (load.own, load.losing, load.unchanged), strict=True):
                total.add(part)
        for name, each in zip(("key", "losing", "were nothing changed"), sums, strict=True):
            print(
                f"{kind}, {name}: {each.coverage:.1%} of {each.told} held, {each.early} early, {each.late} late, "
                f"unknown {dict(each.unknown)}, median width {statistics.median(each.widths_ms or [0]):.0f} ms, "
                f"median wait {statistics.median(each.waits_ms or [0]):.0f} ms"
            )
        found[kind] = sums
    return found


def test_no_load_is_both_fitted_on_and_judged_on() -> None:
    assert not set(FITTED_ON) & set(SEEDS)


def test_nine_of_ten_previews_hold(outcomes: dict[str, tuple[Outcome, Outcome, Outcome]]) -> None:
    both = Outcome()
    for own, losing, _ in outcomes.values():
        both.add(own)
        both.add(losing)

    assert both.told >= 50 * len(SEEDS)
    # So few of a stream of intervals scatter around what they hold in the long run.
    scatter = 3 * math.sqrt(0.9 * 0.1 / both.told)
    assert COVERAGE_LEAST - scatter <= both.coverage <= COVERAGE_MOST + scatter


def test_what_is_told_for_no_change_does_not_hold_when_there_is_one(
    outcomes: dict[str, tuple[Outcome, Outcome, Outcome]],
) -> None:
    changed, unchanged = Outcome(), Outcome()
    for own, losing, before in outcomes.values():
        changed.add(own)
        changed.add(losing)
        unchanged.add(before)

    assert unchanged.coverage < changed.coverage - 0.1
