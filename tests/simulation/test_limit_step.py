"""Every state of the small machine of limits is judged, and each wrong rule is found in one of them."""

import pytest

from tests.simulation.limit_step import Broken, Rules, visit, without_progress


@pytest.mark.costly("every state of the model")
def test_no_state_breaks_a_bound_and_every_message_that_no_budget_holds_can_go() -> None:
    follow = visit(Rules())
    assert len(follow) > 10_000
    assert without_progress(follow) == []


def test_a_shadow_holds_nothing() -> None:
    follow = visit(Rules(is_shadow=True))
    assert without_progress(follow) == []


@pytest.mark.parametrize(
    ("mutant", "found"),
    [
        (Rules(takes_one_by_one=True), "took something of it"),
        (Rules(waits_holding=True), "took something of it|holds something"),
        (Rules(refunds_twice=True), "more tokens than came|more than its budget"),
        (Rules(reopens_a_period=True), "more than its budget"),
        (Rules(forgets_leases=True), "took something of it|in flight"),
    ],
)
def test_each_wrong_rule_is_found(mutant: Rules, found: str) -> None:
    with pytest.raises(Broken, match=found):
        visit(mutant)
