"""A query of several queues: which they are, where it stands in each, how they share a limit, what comes and goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_stream_read import reader, run_to_end
from told_log import Clock, ToldBroker, ToldLog, at, of_query

from pyspark_fila.errors import DataLoss, OptionInvalid, QueueNotFound
from pyspark_fila.listener import Lag, LagListener, lag_of
from pyspark_fila.options import parse_options
from pyspark_fila.query_progress import LISTED_EVERY_S, shares
from pyspark_fila.queue_progress import SAMPLES
from pyspark_fila.subscribed import QUEUES_MAX, subscribed


def stands(gone: int = 0, **offsets: int) -> dict:
    parts = {
        name: {"creation": "1", "offset": offset, "lost": 0, "remade": 0} for name, offset in offsets.items()
    }
    return {"queues": parts, "gone": gone}


def two(**options: object) -> tuple[ToldBroker, object]:
    broker = ToldBroker(a=ToldLog(range(1, 101)), b=ToldLog(range(1, 11)))
    return broker, of_query(broker, **{"queues": "*", **options})


@pytest.mark.parametrize(
    ("given_names", "meant"),
    [
        ("orders", ["orders"]),
        ("orders,bills", ["bills", "orders"]),
        ("o*s,*2", ["bills-2", "orders", "orders-2"]),
        ("*", ["bills", "bills-2", "orders", "orders-2"]),
        ("orders.dlq", ["orders.dlq"]),
        ("orders*.dlq", ["orders.dlq"]),
        ("_fila*", ["_fila-own"]),
        ("*s", ["bills", "orders"]),
        ("order", []),
    ],
)
def test_a_pattern_meets_no_dead_letters_and_nothing_of_the_broker_unless_it_says_so(given_names, meant):
    there = ["_fila-own", "bills", "bills-2", "orders", "orders-2", "orders.dlq"]
    assert subscribed(parse_options({"queues": given_names}), there) == meant


def test_more_queues_than_a_query_reads_are_refused():
    with pytest.raises(
        OptionInvalid, match=f"means {QUEUES_MAX + 1} queues, and one query reads {QUEUES_MAX}"
    ):
        subscribed(parse_options({"queues": "*"}), map(str, range(QUEUES_MAX + 1)))


@pytest.mark.parametrize(
    ("given_names", "error", "said"),
    [
        ("c*", OptionInvalid, r"no queue of localhost:5555 matches c\*; a key sees the queues"),
        ("a,c", QueueNotFound, 'localhost:5555 has no queue "c", which the option queues names'),
    ],
)
def test_names_and_patterns_that_meet_nothing_are_told_in_one_sentence(given_names, error, said):
    with pytest.raises(error, match=said):
        two(queues=given_names)[1].initial()


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 1000), max_size=8), st.integers(1, 2000))
def test_a_limit_is_used_up_and_none_gets_less_than_another_that_got_less_than_it_wants(wanted, most):
    given_out = shares(wanted, most)
    assert given_out.keys() == wanted.keys()
    assert all(1 <= given_out[name] <= max(1, wanted[name]) for name in wanted)
    assert sum(given_out.values()) <= max(most, 0) + len(wanted)
    short = [name for name in wanted if given_out[name] < wanted[name]]
    if short:
        assert sum(given_out[name] for name in wanted if wanted[name]) >= most
        assert min(given_out[name] for name in short) >= max(given_out.values()) - 1


def test_each_queue_has_an_offset_of_its_own_and_a_share_of_the_limit():
    _, told = two()
    start = told.initial()
    assert start == stands(a=1, b=1)
    end = told.next_end(start, 50)
    assert end == stands(a=41, b=11), "what b does not want is a's"
    assert [(each.queue, each.start, each.end) for each in told.kept_ranges(start, end)] == [
        ("a", 1, 41),
        ("b", 1, 11),
    ]
    assert told.next_end(end, None) == stands(a=101, b=11)
    assert told.next_end(stands(a=101, b=11), 50) == stands(a=101, b=11)
    assert told.latest() == {"queues": {"a": {"offset": 101}, "b": {"offset": 11}}}


def test_a_queue_that_comes_to_match_is_read_from_its_beginning():
    broker, clock = ToldBroker(a=ToldLog(range(1, 11))), Clock()
    told = of_query(broker, clock, queues="*", startingOffset="latest")
    start = told.initial()
    assert start == stands(a=11)
    broker["b"] = ToldLog(range(21, 31))
    assert told.next_end(start, None) == start, "not listed again yet"
    clock.now += LISTED_EVERY_S
    came = told.next_end(start, None)
    assert came == stands(a=11, b=21)
    assert told.kept_ranges(start, came) == []
    end = told.next_end(came, None)
    assert [(each.queue, each.start, each.end) for each in told.kept_ranges(came, end)] == [("b", 21, 31)]


@pytest.mark.parametrize("listed", [True, False])
def test_a_queue_that_goes_is_data_loss_or_is_counted(listed):
    for allowed in (False, True):
        clock = Clock()
        broker = ToldBroker(a=ToldLog(range(1, 11)), b=ToldLog(range(1, 11)))
        told = of_query(broker, clock, queues="a,b", failOnDataLoss=str(not allowed), pollIntervalMs=10)
        start = told.initial()
        del broker["b"]
        clock.now += LISTED_EVERY_S if listed else 1
        if not allowed:
            with pytest.raises(DataLoss, match=r'not there any more, .* sees: "b" \(read up to offset 0\)'):
                told.next_end(start, None)
            continue
        moved = told.next_end(start, None)
        assert moved == stands(gone=1, a=1)
        assert told.kept_ranges(start, moved) == []
        assert told.next_end(moved, None) == stands(gone=1, a=11)


def test_a_batch_that_is_replayed_when_one_of_its_queues_is_gone_says_so_or_reads_the_others():
    broker, told = two()
    start, end = told.initial(), stands(a=41, b=11)
    del broker["b"]
    with pytest.raises(DataLoss, match='"b"'):
        of_query(broker, queues="*").kept_ranges(start, end)
    allowed = of_query(broker, queues="*", failOnDataLoss="false")
    assert [each.queue for each in allowed.kept_ranges(start, end)] == ["a"]


def test_a_queue_made_anew_among_others_is_refused_or_read_from_its_beginning():
    broker, told = two()
    told.next_end(told.initial(), None)
    broker["b"].make_anew(range(1, 6))
    told.fix_end()
    with pytest.raises(DataLoss, match='queue "b" was made anew'):
        told.next_end(stands(a=101, b=11), None)
    allowed = of_query(broker, queues="*", failOnDataLoss="false")
    moved = allowed.next_end(stands(a=101, b=11), None)
    assert moved["queues"]["b"] == {"creation": "11", "offset": 1, "lost": 0, "remade": 1}


def test_an_available_now_run_reads_no_queue_that_came_after_it_began():
    broker, clock = ToldBroker(a=ToldLog(range(1, 11))), Clock()
    told = of_query(broker, clock, queues="*")
    start = told.initial()
    told.fix_end()
    broker["b"] = ToldLog(range(1, 11))
    broker["a"].fill(11, 12)
    clock.now += LISTED_EVERY_S
    assert told.next_end(start, None) == stands(a=11)
    assert told.next_end(stands(a=11), None) == stands(a=11)


def test_the_checkpoint_of_one_queue_is_not_that_of_several():
    _, told = two()
    with pytest.raises(
        OptionInvalid, match='query that read the one queue "orders", and this one has the option'
    ):
        told.next_end(at(1), None)
    one = of_query(ToldBroker(a=ToldLog(range(1, 3))), queue="a")
    with pytest.raises(
        OptionInvalid, match=r"read several queues \(a, b\), and this one has the option queue;"
    ):
        one.next_end(stands(a=1, b=1), None)
    with pytest.raises(OptionInvalid, match="says epoch, which this version"):
        told.next_end({**stands(a=1), "epoch": 1}, None)


def test_a_queue_that_keeps_nothing_is_refused_among_others_too():
    broker = ToldBroker(a=ToldLog(range(1, 11)), b=ToldLog(range(1, 11), soft_ms=0))
    with pytest.raises(
        OptionInvalid, match="option queues: cannot be read, because queue b keeps no message"
    ):
        of_query(broker, queues="*").next_end(stands(a=1, b=1), None)


# --- limits of a trigger ----------------------------------------------------------------------


def test_fewer_messages_than_a_micro_batch_is_to_have_wait_for_more_or_for_their_time():
    log, clock = ToldLog(range(1, 6)), Clock()
    asked = {"queue": "a", "minMessagesPerTrigger": 10, "maxTriggerDelay": "30s", "pollIntervalMs": 10}
    told = of_query(ToldBroker(a=log), clock, **asked)
    start = at(1, queue="a")
    assert told.next_end(start, 100) == start
    assert not [call for call in log.calls if call != "bounds"], "nothing is read while they wait"
    clock.now += 29
    assert told.next_end(start, 100) == start
    clock.now += 1
    assert told.next_end(start, 100) == at(6, queue="a")
    log.fill(6, 7)
    clock.now += 1
    assert told.next_end(at(6, queue="a"), 100) == at(6, queue="a"), (
        "the time begins anew with what came since"
    )
    log.fill(*range(8, 20))
    clock.now += 1
    assert told.next_end(at(6, queue="a"), 100) == at(20, queue="a")


def test_a_run_of_what_is_available_now_does_not_wait_for_more():
    told = of_query(ToldBroker(a=ToldLog(range(1, 6))), queue="a", minMessagesPerTrigger=10)
    told.fix_end()
    assert told.next_end(at(1, queue="a"), 100) == at(6, queue="a")


def test_what_is_lost_is_told_however_few_messages_are_there():
    told = of_query(ToldBroker(a=ToldLog(range(1, 6))), queue="a", minMessagesPerTrigger=10)
    with pytest.raises(DataLoss, match="shorter than the checkpoint"):
        told.next_end(at(50, queue="a"), 100)


def test_a_limit_of_bytes_goes_by_the_larger_of_two_means():
    log = ToldLog(range(1, 1001))
    log.sizes = dict.fromkeys(range(1, 1001), 50)
    told = of_query(ToldBroker(a=log), queue="a", maxBytesPerTrigger=5000)
    assert told.next_end(at(1, queue="a"), 1000) == at(101, queue="a")
    assert len([call for call in log.calls if call.startswith("size")]) == SAMPLES
    log.stored_bytes = 1000 * 500
    told = of_query(ToldBroker(a=log), queue="a", maxBytesPerTrigger=5000)
    assert told.next_end(at(1, queue="a"), 1000) == at(11, queue="a")


def test_a_message_above_the_limit_of_bytes_goes_alone():
    log = ToldLog(range(1, 11))
    log.sizes = dict.fromkeys(range(1, 11), 10_000_000)
    told = of_query(ToldBroker(a=log), queue="a", maxBytesPerTrigger=5000)
    assert told.next_end(at(1, queue="a"), 1000) == at(2, queue="a")


def test_a_limit_of_bytes_is_shared_by_the_bytes_of_each_queue():
    broker, told = two(maxBytesPerTrigger=2000)
    broker["a"].sizes = dict.fromkeys(range(1, 101), 100)
    broker["b"].sizes = dict.fromkeys(range(1, 11), 10)
    assert told.next_end(stands(a=1, b=1), 1000) == stands(a=20, b=11)


# --- in Spark ---------------------------------------------------------------------------------


@pytest.fixture
def filled(broker, queue):
    """Two queues of one beginning, and that beginning."""
    for letter, count in (("a", 2000), ("b", 500)):
        broker.create(f"{queue[:60]}-{letter}")
        broker.fill(f"{queue[:60]}-{letter}", count)
    return queue[:60]


def run(spark, broker, folder, **options):
    return run_to_end(reader(spark, broker, **options).load(), folder)


def counts(frame):
    return {row.queue[-2:]: row["count"] for row in frame.groupBy("queue").count().collect()}


def test_queues_are_read_as_one_table_that_names_them(spark, broker, filled):
    asked = spark.read.format("fila").option("address", broker.address)
    rows = asked.option("queues", f"{filled}-*").load()
    assert rows.columns[0] == "queue"
    assert counts(rows) == {"-a": 2000, "-b": 500}
    assert rows.rdd.getNumPartitions() == 2, "1000 messages a task at least, whichever queue they are of"
    assert counts(rows.where(f"queue = '{filled}-b' and offset <= 20")) == {"-b": 20}
    with pytest.raises(Exception, match=r"matches nothing-\*; a key sees the queues"):
        asked.option("queues", "nothing-*").load().count()


def test_a_stream_of_a_pattern_goes_on_with_a_queue_that_came_and_tells_its_lag(
    spark, broker, filled, tmp_path
):
    told: list[Lag] = []
    listener = LagListener(told.append)
    spark.streams.addListener(listener)
    options = {"queues": f"{filled}-*", "maxMessagesPerTrigger": 1000}
    done = run(spark, broker, tmp_path, **options)
    assert [progress["numInputRows"] for progress in done] == [1000, 1000, 500]
    assert lag_of(done[0]).queues == {f"{filled}-a": 1500, f"{filled}-b": 0}
    assert lag_of(done[-1]).behind == 0
    broker.create(f"{filled}-c")
    broker.fill(f"{filled}-c", 10)
    assert [progress["numInputRows"] for progress in run(spark, broker, tmp_path, **options)] == [10]
    assert counts(spark.read.parquet(str(tmp_path / "out"))) == {"-a": 2000, "-b": 500, "-c": 10}
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    spark.streams.removeListener(listener)
    assert max(lag.behind for lag in told) == 1500
    assert told[-1].queues == {f"{filled}-{letter}": 0 for letter in "abc"}
    with pytest.raises(Exception, match=r"checkpoint.*several queues"):
        run(spark, broker, tmp_path, queue=f"{filled}-a")


def test_rows_of_several_queues_are_written_back_to_their_own(spark, broker, filled):
    options = {"address": broker.address, "queues": f"{filled}-*"}
    rows = spark.read.format("fila").options(**options).load().where("offset <= 3")
    rows.write.format("fila").mode("append").option("address", broker.address).save()
    assert counts(spark.read.format("fila").options(**options).load()) == {"-a": 2003, "-b": 503}
