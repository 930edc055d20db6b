"""A line that is pasted into a shell hands each word on as it is."""

from __future__ import annotations

import random
import shlex
import subprocess

import pytest

from fila.shell_words import command_line, shell_line, shell_word

ODD = [
    "p\nq",
    "a'b\n",
    "\x1b[2J",
    "\u202eabc",
    "a\\n\r",
    "$HOME\t`id`",
    "\x0712",
    "\u00a0",
    "\U000e0041",
    "ü\n7",
    "\x7f",
]


@pytest.mark.parametrize("text", ["", "acme", "two words", "it's", "ü", "-x", "$HOME"])
def test_a_word_that_prints_is_quoted_as_any_shell_knows(text):
    assert shell_word(text) == shlex.quote(text)


def test_a_word_with_characters_that_do_not_print_reaches_the_command_and_prints():
    rng = random.Random(7)
    drawn = ["".join(rng.choices("\n\t\x01\x7f\u2028'\\\"$ 01aü", k=6)) for _ in range(200)]
    line = shell_line(["printf", r"%s\0", *ODD, *drawn])

    assert line.isprintable()
    ran = subprocess.run(["bash", "-c", line], capture_output=True, check=True, env={"LC_ALL": "C"})
    assert ran.stdout.decode().split("\0")[:-1] == [*ODD, *drawn]


def test_a_name_that_begins_with_a_dash_is_no_option_of_its_command():
    assert command_line("fila key rate", "q", "k", "5") == "fila key rate q k 5"
    assert (
        command_line("fila queue pause", "q", options=["--reason", "a b"])
        == "fila queue pause q --reason 'a b'"
    )
    assert (
        command_line("fila key pause", "q", "-k", options=["--reason", "x"])
        == "fila key pause --reason x -- q -k"
    )
    assert command_line("fila key resume", "q", "-k") == "fila key resume -- q -k"


@pytest.mark.parametrize("given", [{"named": ("a\0b",)}, {"options": ["--reason", "\0"]}])
def test_a_word_that_no_shell_can_hand_on_makes_no_line(given):
    assert (
        command_line("fila key pause", "q", *given.get("named", ()), options=given.get("options", ())) == ""
    )
