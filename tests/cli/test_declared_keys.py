"""What a file says of single fairness keys: what is set, what is exported, what is wrong with it."""

from __future__ import annotations

import pytest

from fila.v1 import admin_pb2
from tests.cli.fake_broker import FakeBroker
from tests.cli.test_declared import there, with_tables


def test_of_a_key_what_the_file_names_is_set_and_the_rest_stays(fila, broker: FakeBroker, tmp_path):
    there(broker, weight=3, max_in_flight=10)
    path = with_tables(
        tmp_path, "[queues.orders.keys.acme]", "weight = 3", "cap = 5", "rate = 2.5", "committed = 2"
    )

    said = fila("apply", path)

    assert (
        said.out
        == "~ key orders/acme cap 10 -> 5, rate unset -> 2.5, committed unset -> 2\n1 thing changed\n"
    )
    request = broker.request("SetKeyPolicy")
    assert (request.queue, request.fairness_key) == ("orders", "acme")
    assert (request.max_in_flight, request.rate_per_second, request.committed_per_second) == (5, 2.5, 2)
    assert not request.HasField("weight")
    assert not request.HasField("paused")


def test_an_export_with_keys_is_a_file_that_changes_nothing(fila, broker: FakeBroker, tmp_path):
    there(broker, paused=True, weight=3, max_in_flight=10)
    broker.answers["ListQueues"] = admin_pb2.ListQueuesResponse(queues=[admin_pb2.QueueInfo(name="orders")])

    exported = fila("export", "--keys", "orders").out

    assert "paused = true" in exported
    assert '[queues."orders".keys."acme"]\nweight = 3\ncap = 10\n' in exported
    path = tmp_path / "exported.toml"
    path.write_text(exported)
    assert fila("diff", str(path)).out == "nothing differs\n"


def test_what_a_key_has_by_its_queues_defaults_is_not_exported_as_its_own(fila, broker: FakeBroker):
    there(
        broker,
        weight=3,
        max_in_flight=10,
        rate_per_second=5,
        burst=5,
        committed_per_second=2,
        cap_by_default=True,
        rate_by_default=True,
        committed_by_default=True,
    )

    exported = fila("export", "--keys", "orders").out

    assert exported.endswith('[queues."orders".keys."acme"]\nweight = 3\n\n')


NONE_OVER_DEFAULTS = "cap = 0\nrate = 0\ncommitted = 0\n"


def with_key_defaults(broker: FakeBroker) -> None:
    defaults = broker.answers["GetQueue"].config.key_defaults
    defaults.max_in_flight, defaults.rate_per_second, defaults.committed_per_second = 4, 2, 1


def test_that_a_key_has_none_where_its_queue_has_defaults_is_exported_and_changes_nothing(
    fila, broker: FakeBroker, tmp_path
):
    there(broker, weight=3)
    with_key_defaults(broker)

    exported = fila("export", "--keys", "orders").out

    assert exported.endswith(f'[queues."orders".keys."acme"]\nweight = 3\n{NONE_OVER_DEFAULTS}\n')
    path = tmp_path / "exported.toml"
    path.write_text(exported)
    assert fila("diff", str(path)).out == "nothing differs\n"


def test_a_file_takes_from_a_key_what_its_queues_defaults_give(fila, broker: FakeBroker, tmp_path):
    there(broker)
    with_key_defaults(broker)
    of_queue = ("key-cap = 4", "key-rate = 2", "key-committed = 1")
    path = with_tables(tmp_path, *of_queue, "[queues.orders.keys.acme]", NONE_OVER_DEFAULTS)
    differs = "~ key orders/acme cap unset -> 0, rate unset -> 0, committed unset -> 0\n1 thing "

    assert fila("diff", path).out == f"{differs}would change\n"
    fila("apply", path)
    request = broker.request("SetKeyPolicy")
    given = ("max_in_flight", "rate_per_second", "committed_per_second")
    assert [(request.HasField(name), getattr(request, name)) for name in given] == [(True, 0)] * 3
    by_default = {"cap_by_default": True, "rate_by_default": True, "committed_by_default": True}
    there(broker, weight=3, max_in_flight=4, rate_per_second=2, committed_per_second=1, **by_default)
    with_key_defaults(broker)
    assert fila("diff", path).out == f"{differs}would change\n", "the defaults hold, and nobody said 0"
    there(broker, weight=3)
    assert "~ key orders/acme cap unset -> 0" in fila("diff", path).out, "the defaults come with the file"
    path = with_tables(tmp_path, "[queues.orders.keys.acme]", NONE_OVER_DEFAULTS)
    assert fila("diff", path).out == "nothing differs\n", "there is nothing to take away"


def test_a_key_with_a_line_of_its_own_forges_none_in_a_diff(fila, broker: FakeBroker, tmp_path):
    there(broker)
    path = with_tables(tmp_path, r'[queues.orders.keys."a\nnothing differs\u001b[2J\u202e"]', "cap = 5")

    assert fila("diff", path).out == (
        "~ key orders/a\\x0anothing differs\\x1b[2J\\u202e cap unset -> 5\n1 thing would change\n"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("color = 3", "queues.orders.keys.acme.color is no setting of a key; known are weight, cap"),
        ("weight = 2.5", "queues.orders.keys.acme.weight must be a whole number"),
        ("weight = 1001", "queues.orders.keys.acme.weight must be 0 to 1000, got 1001"),
        ("paused = 1", "queues.orders.keys.acme.paused must be true, false, or a text that says why"),
        ('paused = ""', "queues.orders.keys.acme.paused must be true, false, or a text that says why"),
    ],
)
def test_what_is_wrong_with_a_key_is_told_by_its_place(
    fila, broker: FakeBroker, tmp_path, line: str, said: str
):
    ran = fila("diff", with_tables(tmp_path, "[queues.orders.keys.acme]", line))

    assert ran.code == 2
    assert said in " ".join(ran.err.split())
