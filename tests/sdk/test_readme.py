"""Every sample of the README runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fila.options import ClientOptions
from tests.sdk.fake_broker import FakeBroker

README = Path(__file__).parents[2] / "sdks/python/README.md"
SAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"sample {i}" for i in range(1, len(SAMPLES) + 1)])
def test_the_sample_runs(broker_thread: FakeBroker, sample: str) -> None:
    if 'create_queue("coffee-orders"' not in sample:
        broker_thread.add("coffee-orders")
    broker_thread.add("emails.dlq")

    program = sample.replace("localhost:5555", broker_thread.address)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_table_of_settings_shows_every_option() -> None:
    for name in ClientOptions.__dataclass_fields__:
        assert f"`{name}`" in README.read_text(), name
