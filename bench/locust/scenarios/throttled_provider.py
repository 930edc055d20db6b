"""Two providers behind one queue, one with a rate limit: its messages wait in the broker, the other's don't.

Reported besides: how far the delivered rate was from the configured one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fila_locust import grpc_users, judgement, listening, options, queue
from locust.env import Environment

PROVIDER_HEADER = "provider"
SLOW, FREE = "slow", "free"

_DELIVERED = "fila_slow_by_second"
delivered_by_second: Counter[int] = Counter()


def limits(asked: Any) -> Mapping[str, str]:
    """A bucket that holds a tenth of a second's tokens, so that its rate is seen at once."""
    return {f"throttle.{SLOW}": f"{asked.provider_rate:g},{max(1.0, asked.provider_rate / 10):g}"}


def rate_verdict(asked: Any, _stats: object) -> judgement.Verdict:
    """On the whole seconds between the first and the last delivery."""
    seconds = sorted(delivered_by_second)[1:-1]
    if len(seconds) < 2:
        return not asked.fail_rate_error, "the slow provider got too little to judge its rate"
    rate = sum(delivered_by_second[second] for second in seconds) / (seconds[-1] - seconds[0] + 1)
    error = abs(rate / asked.provider_rate - 1)
    text = (
        f"the slow provider got {rate:.1f} messages a second of {asked.provider_rate:g}, off by {error:.1%}"
    )
    if not asked.fail_rate_error:
        return True, text
    passed = error <= asked.fail_rate_error
    return passed, f"{'ok' if passed else 'failed'}: {text}, allowed are {asked.fail_rate_error:.1%}"


@listening.at_start
def forget(environment: Environment, **_: object) -> None:
    """Called by locust at each start."""
    del environment
    delivered_by_second.clear()


def _hand_over(data: dict[str, Any]) -> None:
    data[_DELIVERED] = dict(delivered_by_second)
    delivered_by_second.clear()


def _count_in(data: dict[str, Any]) -> None:
    delivered_by_second.update({int(second): count for second, count in data.get(_DELIVERED, {}).items()})


listening.between_processes(_hand_over, _count_in)
queue.declare(runtime_config=limits, throttle_key_headers=[PROVIDER_HEADER])
judgement.judge(rows_like=r"delivery \(free\)", rate=rate_verdict)


class ToSlow(grpc_users.Producer):
    """More than the provider takes: at least twice its rate."""

    fixed_count = 1
    role = SLOW

    def __init__(self, environment: Environment) -> None:
        self.rate_per_s = 2 * options.options_of(environment).provider_rate
        super().__init__(environment)

    def headers(self, tenant: str, at: float) -> dict[str, str]:
        return {**super().headers(tenant, at), PROVIDER_HEADER: SLOW}


class ToFree(grpc_users.Producer):
    """The same tenants' messages to the other provider."""

    role = FREE

    def headers(self, tenant: str, at: float) -> dict[str, str]:
        return {**super().headers(tenant, at), PROVIDER_HEADER: FREE}


class Consumer(grpc_users.Consumer):
    """Fast enough for both."""

    fixed_count = 2
    work_ms = 0.0

    def arrived(self, now: float, headers: Any) -> None:
        if headers[PROVIDER_HEADER] == SLOW:
            delivered_by_second[int(now)] += 1
