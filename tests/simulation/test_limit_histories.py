"""Random lives of limits keep every part's bound at every moment; a limit that is too generous is found."""

import pytest

from fila.v1 import limit_pb2 as pb
from tests.simulation.limit_histories import History
from tests.simulation.limit_oracle import Oracle, Wrong


@pytest.mark.parametrize("first", [1, 1_001, 2_001])
def test_no_part_of_a_limit_gives_more_than_it_may(first: int) -> None:
    judged = 0
    for seed in range(first, first + 20):
        history = History(seed)
        history.run()
        judged += history.judged
    assert judged > 400


def test_the_oracle_finds_a_rate_and_a_budget_that_give_too_much() -> None:
    generous = Oracle(pb.Limit(name="b", rates=[pb.Rate(per_second=1, burst=1)]))
    spent = Oracle(pb.Limit(name="b", budget=pb.Budget(amount=2, period_ms=1000)))
    for _ in range(2):
        generous.goes(0.0, 0, 1.0)
        spent.goes(0.0, 0, 1.0)
    generous.goes(0.0, 0, 1.0)
    with pytest.raises(Wrong, match="the bound is"):
        generous.goes(0.0, 0, 1.0)
    with pytest.raises(Wrong, match="in one period"):
        spent.goes(0.0, 0, 1.0)
