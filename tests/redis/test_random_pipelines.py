"""The edge against a model that fits on a page, over pipelines nobody thought of."""

from __future__ import annotations

import os

import pytest

from tests.redis.conftest import Connect
from tests.redis.random_pipelines import RandomPipelines

PIPELINES = 10_000 if os.environ.get("FILA_SOAK") else 1_000


@pytest.mark.parametrize("seed", [1, 2])
async def test_random_pipelines_are_answered_as_the_model_says(connect: Connect, seed: int):
    await RandomPipelines(seed, [await connect() for _ in range(3)]).run(PIPELINES)
