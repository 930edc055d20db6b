"""What a benchmark is asked for by."""

from fila_bench import scenarios
from fila_bench.registry import BENCHMARK_BY_NAME, GROUP_BY_NAME, named

scenarios.register_all()


def test_a_name_is_a_benchmark_or_all_below_it() -> None:
    assert named("headline") == ["headline"]
    assert named("edges") == ["edges/unary", "edges/latency", "edges/life"]
    assert named("edge") == []


def test_each_part_of_a_group_is_there() -> None:
    for group in GROUP_BY_NAME.values():
        assert [part for part in group.names if not named(part)] == []


def test_no_group_hides_a_benchmark() -> None:
    assert not GROUP_BY_NAME.keys() & BENCHMARK_BY_NAME.keys()
    assert named("edge-table")[:3] == named("edges")
