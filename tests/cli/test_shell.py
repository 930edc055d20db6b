"""What every command owes the shell: exit codes, one line of error, help with examples, completion."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from grpc import StatusCode

from fila_cli.address import target_of
from fila_cli.main import fila as root
from fila_cli.session import WORDS_OF_OTHERS
from tests.cli.fake_broker import FakeBroker, Refusal, assert_golden


def every_command() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []

    def walk(command: click.Command, path: tuple[str, ...]) -> None:
        found.append(path)
        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for name in command.list_commands(ctx):
                inner = command.get_command(ctx, name)
                assert inner is not None
                walk(inner, (*path, name))

    walk(root, ())
    return found


@pytest.mark.parametrize("path", every_command(), ids=" ".join)
def test_every_command_explains_itself_by_examples(fila, path):
    ran = fila(*path, "--help")

    assert ran.code == 0
    examples = ran.out.partition("Examples:\n")[2].splitlines()
    assert examples
    prefix = " ".join(("fila", *path))
    assert all(prefix in example for example in examples)


def test_an_argument_that_is_not_utf8_is_refused_by_its_number():
    words: list[str | bytes] = [sys.executable, "-c", "from fila_cli.main import main; main()"]
    ran = subprocess.run(
        [*words, "queue", "inspect", b"caf\xe9"], capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "fila: argument 3, 'caf\\udce9', is not UTF-8, and every argument must be\n"


def test_no_sentence_of_a_help_is_broken_off(fila):
    groups = [path for path in every_command() if any(other[:-1] == path for other in every_command())]

    cut = [
        (path, line)
        for path in groups
        for line in fila(*path, "--help").out.splitlines()
        if "..." in line[5:]
    ]

    # The usage line's own dots stand for arguments.
    assert [each for each in cut if not each[1].startswith("Usage:")] == []


@pytest.mark.parametrize(
    ("words", "flags"),
    [("help", "--help"), ("help queue create", "queue create --help"), ("version", "--version")],
)
def test_what_people_type_for_help_and_version_is_understood(fila, words: str, flags: str):
    assert fila(*words.split()) == fila(*flags.split())


def test_the_help_of_create_is_reviewed(fila):
    assert_golden("queue_create_help.txt", fila("queue", "create", "--help").out)


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "create"),
        ("queue", "frobnicate"),
        ("enqueue", "q", "--header", "novalue"),
        ("top", "--interval", "0"),
    ],
)
def test_bad_usage_is_exit_code_2_in_one_line(fila, broker: FakeBroker, arguments):
    ran = fila(*arguments)

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("fila: ")
    assert ran.err.count("\n") == 1
    assert "--help' shows how" in ran.err
    assert broker.asked == []


def test_no_broker_is_exit_code_1_and_says_how_to_get_one(fila):
    ran = fila("queue", "list", "--addr", "127.0.0.1:1")

    assert ran.code == 1
    assert ran.err == (
        "fila: nobody listens on 127.0.0.1:1 (connection refused); "
        "start one with 'fila-server', or point --addr or FILA_ADDR at it\n"
    )


def test_advice_about_rpcs_becomes_advice_about_commands(fila, broker: FakeBroker):
    text = 'queue "orders" exists; use UpdateQueue to change it'
    broker.answers["CreateQueue"] = Refusal(StatusCode.ALREADY_EXISTS, text, "QUEUE_EXISTS")

    assert fila("queue", "create", "orders").err == (
        "fila: queue \"orders\" exists; change it with 'fila queue update', choose another name, "
        "or say --if-not-exists\n"
    )


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("publish", "'enqueue'"),
        ("pub", "'enqueue'"),
        ("describe", "'queue inspect' or 'key show'"),
        ("info", "'queue inspect' or 'status'"),
        ("stats", "'queue inspect' or 'top'"),
        ("lag", "'channel list' or 'late'"),
        ("queue describe", "'inspect'"),
        ("channel rm", "'delete'"),
        ("message cancel", "'fila cancel'"),
    ],
)
def test_the_words_of_other_brokers_tools_are_answered_with_ours(fila, words, ours):
    assert f"did you mean {ours}?" in fila(*words.split()).err


def test_what_other_brokers_tools_are_answered_with_exists_and_their_words_do_not():
    commands = {" ".join(path) for path in every_command()} | {path[-1] for path in every_command() if path}

    assert {each for ours in WORDS_OF_OTHERS.values() for each in ours} <= commands
    assert not WORDS_OF_OTHERS.keys() & {path[0] for path in every_command() if path}


@pytest.mark.parametrize("may_see", [True, False])
@pytest.mark.parametrize("key", ["a-key", ""])
def test_who_sees_a_queue_and_not_its_dead_letters_is_told_that_it_may_be_a_right(
    fila, broker: FakeBroker, monkeypatch, may_see, key
):
    def refusal(queue: str) -> Refusal:
        return Refusal(StatusCode.NOT_FOUND, f'queue "{queue}" does not exist', "QUEUE_NOT_FOUND")

    monkeypatch.setenv("FILA_API_KEY", key)
    broker.answers["PeekMessages"] = refusal("hooks.dlq")
    if not may_see:
        broker.answers["GetStats"] = refusal("hooks")

    told = fila("dlq", "list", "hooks.dlq").err

    if may_see and key:
        assert told == (
            'fila: queue "hooks.dlq" does not exist; or this key has no right to it: an admin gives one with '
            "'fila auth grant NAME --consume hooks.dlq'\n"
        )
    else:
        assert told == (
            "fila: queue \"hooks.dlq\" does not exist; 'fila queue list' shows the queues there are\n"
        )


def test_a_missing_channel_names_those_that_there_are(fila, broker: FakeBroker):
    text = (
        'queue "orders" has no channel "mial"; it has "default", "mail": name one of them, or make this one with '
        "CreateChannel"
    )
    broker.answers["GetStats"] = Refusal(StatusCode.NOT_FOUND, text, "CHANNEL_NOT_FOUND")

    assert fila("queue", "inspect", "orders", "--channel", "mial").err == (
        'fila: queue "orders" has no channel "mial"; it has "default", "mail"; make this one with '
        "'fila channel create'\n"
    )


def test_a_broker_that_already_gives_advice_is_not_talked_over(fila, broker: FakeBroker):
    text = "queue orders holds 10 messages, max_depth is 10; consume some, or raise max_depth"
    broker.answers["Enqueue"] = Refusal(StatusCode.RESOURCE_EXHAUSTED, text, "LIMIT_EXCEEDED")

    assert fila("enqueue", "orders", "x").err == f"fila: {text}\n"


def test_a_flag_given_early_wins_over_the_environment(fila, broker: FakeBroker, monkeypatch):
    monkeypatch.setenv("FILA_ADDR", "127.0.0.1:1")

    assert fila("--addr", broker.address, "queue", "list").code == 0


def test_the_nearest_flag_wins(fila, broker: FakeBroker):
    assert fila("--addr", "127.0.0.1:1", "-o", "yaml", "queue", "list", "--addr", broker.address).code == 0


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("http://localhost:5555", ("localhost:5555", False)),
        ("localhost", ("localhost:5555", False)),
        ("broker.example:6000", ("broker.example:6000", False)),
        ("https://broker.example", ("broker.example:5555", True)),
        ("http://[::1]:7000/", ("[::1]:7000", False)),
    ],
)
def test_an_address_needs_neither_scheme_nor_port(address, target):
    assert target_of(address) == target


@pytest.mark.parametrize(
    "address", ["", "ftp://x", "localhost:port", "http://", "localhost:99999", "host/path", "http://[::1"]
)
def test_a_bad_address_is_bad_usage(fila, address):
    ran = fila("queue", "list", "--addr", address)

    assert ran.code == 2
    assert "--addr" in ran.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(fila, shell):
    ran = fila("completion", shell)

    assert ran.code == 0
    assert "_FILA_COMPLETE" in ran.out


@pytest.mark.parametrize("words", ["completion bash", "--help", "queue --help", "--version"])
def test_a_reader_that_has_seen_enough_is_no_failure(words: str):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from fila_cli.main import main; main()", *words.split()]

    with os.fdopen(writing, "wb") as nobody_reads:
        done = subprocess.run(command, stdout=nobody_reads, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_help_starts_without_grpc_and_rich():
    script = (
        "import sys; from fila_cli import main; main.run(['queue', '--help']);"
        "print(sorted({'grpc', 'rich', 'google.protobuf'} & set(sys.modules)), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stderr == "[]\n"
