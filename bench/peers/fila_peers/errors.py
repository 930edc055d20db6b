"""What can go wrong with a comparison, as texts that say what to do."""

from __future__ import annotations


class PeerFailed(Exception):
    """A broker could not be installed, started or stopped; what it said last is in the text."""


class LoadFailed(Exception):
    """The load generator failed; what it said is in the text."""


class OtherRun(Exception):
    """Results on disk belong to another commit or plan, and must not be mixed with new ones."""
