"""How many users there are, and which, over the course of a run.

All of them go by -u (the most users at once), -r (users started a second) and -t (how long), so that one shape serves
a minute's look and an hour's test.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from locust import LoadTestShape, User

Tick = tuple[int, float] | tuple[int, float, list[type[User]] | None]

_DEFAULT_RUN_S = 60
_SETTLE_S = 0.9


class FilaShape(LoadTestShape):
    """A shape as a function of the part of the run that is over, 0 to 1."""

    abstract = True
    use_common_options = True

    def at(self, part: float, users: int) -> tuple[int, list[type[User]] | None]:
        """How many of `users` there are at this part of the run, and of which classes (None: all)."""
        raise NotImplementedError

    def tick(self) -> Tick | None:
        """Asked by locust each second; None ends the run."""
        assert self.runner is not None, "locust asks for a tick once it runs"
        options: Any = self.runner.environment.parsed_options
        part = self.get_run_time() / (options.run_time or _DEFAULT_RUN_S)  # type: ignore[no-untyped-call]
        if part >= 1:
            return None
        users, classes = self.at(part, options.num_users or 10)
        return max(1, users), self.spawn_rate(options), classes

    def spawn_rate(self, options: Any) -> float:
        """Users started or stopped a second."""
        return options.spawn_rate or 10.0


class Ramp(FilaShape):
    """From a tenth of the users to all of them in ten even steps: where does waiting begin?"""

    abstract = True

    def at(self, part: float, users: int) -> tuple[int, list[type[User]] | None]:
        return math.ceil(users * (math.floor(part * 10) + 1) / 10), None


class Spike(FilaShape):
    """A fifth of the users, all of them for a sixth of the run, a fifth again: how fast is it over?"""

    abstract = True

    def at(self, part: float, users: int) -> tuple[int, list[type[User]] | None]:
        return users if 0.4 <= part < 0.57 else math.ceil(users / 5), None


class Soak(FilaShape):
    """All users, all the time: does anything grow?"""

    abstract = True

    def at(self, part: float, users: int) -> tuple[int, list[type[User]] | None]:
        del part
        return users, None


class Waves(FilaShape):
    """Four waves between a fifth of the users and all of them. Each user that starts is a tenant never seen before."""

    abstract = True

    def at(self, part: float, users: int) -> tuple[int, list[type[User]] | None]:
        height = (1 - math.cos(part * 4 * 2 * math.pi)) / 2
        return math.ceil(users * (0.2 + 0.8 * height)), None


class Visitors(FilaShape):
    """Some users stay, others are there for a part of the run only.

    Locust takes away the user that came last, of any class. So those who stay come first, visitors are added as a
    class of their own, and all of either come at once, whatever -r says."""

    abstract = True
    stay: ClassVar[list[type[User]]] = []
    visit: ClassVar[list[type[User]]] = []
    visitors = 1
    """How many of the users they are."""

    def present(self, part: float) -> bool:
        """Whether the visitors are there at this part of the run."""
        raise NotImplementedError

    def at(self, part: float, users: int) -> tuple[int, list[type[User]] | None]:
        settled = self.get_run_time() > _SETTLE_S  # type: ignore[no-untyped-call]
        if settled and self.present(part):
            return max(users, self.visitors + 1), self.visit
        return max(users - self.visitors, 1), self.stay

    def spawn_rate(self, options: Any) -> float:
        del options
        return 100.0


class Interlude(Visitors):
    """Visitors from a quarter to two thirds of the run."""

    abstract = True

    def present(self, part: float) -> bool:
        return 0.25 <= part < 0.65


class Gap(Visitors):
    """Visitors who are away from a quarter to two thirds of the run."""

    abstract = True

    def present(self, part: float) -> bool:
        return not 0.25 <= part < 0.65
