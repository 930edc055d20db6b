"""The check of sentences counts what a reader reads, and nothing else."""

from __future__ import annotations

import pytest

from tools.sentences import PAGES, ROOT, long_sentences, sentences

TEN = "one two three four five six seven eight nine ten"


def texts(markdown: str) -> list[str]:
    return [sentence.text for sentence in sentences(markdown)]


def test_a_sentence_is_too_long_from_the_thirty_sixth_word_on():
    thirty_five = f"{TEN} {TEN} {TEN} one two three four five."
    thirty_six = f"{TEN} {TEN} {TEN} one two three four five six."

    assert not long_sentences(thirty_five)
    assert [sentence.words for sentence in long_sentences(thirty_six)] == [36]


def test_a_sentence_goes_on_over_the_lines_of_its_paragraph():
    found = long_sentences(f"# A heading\n\nIt begins here\n{TEN}\n{TEN}\n{TEN}\n{TEN}.\n")

    assert [(sentence.line, sentence.words) for sentence in found] == [(3, 43)]


@pytest.mark.parametrize("end", [". ", "! ", "? ", '." ', ".) ", ".** ", "\n\n", "\n- ", "\n1. ", "\n## "])
def test_a_sentence_ends_with(end: str):
    assert not long_sentences(f"{TEN} {TEN} {TEN}{end}{TEN} {TEN} {TEN}.")


@pytest.mark.parametrize("going_on", [", ", "; ", ": ", " e.g. ", " `a.b. c` ", " fila.toml "])
def test_a_sentence_does_not_end_with(going_on: str):
    assert len(long_sentences(f"{TEN} {TEN}{going_on}{TEN} {TEN}.")) == 1


def test_inline_code_is_one_word_and_markup_is_none():
    assert texts("Type `fila queue create orders` **now**, see [the page](docs/a_long/page.md).") == [
        "Type code now, see the page."
    ]
    assert [sentence.words for sentence in sentences("Type `fila queue create orders` - **now**.")] == [3]


def test_code_blocks_comments_and_pictures_are_no_prose():
    page = f"""Before.

    {TEN} = {TEN}
    {TEN} = {TEN}

```sh
{TEN} {TEN} {TEN} {TEN}
```

````text
```
{TEN} {TEN} {TEN} {TEN}
```
````

<!-- {TEN} {TEN} {TEN} {TEN} -->
![{TEN} {TEN} {TEN} {TEN}](picture.png)

After.
"""
    assert texts(page) == ["Before.", "After."]


def test_a_tables_cells_are_told_apart():
    row = f"| {TEN} {TEN} | {TEN} `a \\| b` {TEN} | {TEN} {TEN} |"
    page = f"| a | b | c |\n|---|:--|--:|\n{row}\n"

    assert not long_sentences(page)
    assert texts(page)[:3] == ["a", "b", "c"]
    assert [
        sentence.line
        for sentence in long_sentences(page.replace(f"{TEN} | {TEN} {TEN} |", f"{TEN} {TEN} {TEN} |"))
    ] == [3]


def test_every_pattern_of_the_list_finds_a_page():
    assert not [pattern for pattern in PAGES if not list(ROOT.glob(pattern))]
