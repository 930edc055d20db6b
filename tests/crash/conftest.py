"""The server of the end-to-end tests, for tests that kill it."""

from tests.e2e.conftest import server, start_server

__all__ = ["server", "start_server"]
