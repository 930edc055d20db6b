"""What every test may rely on.

`@pytest.mark.needs("redis-cli", "module:atheris")` names programs and modules a test cannot do without. Where one
is missing the test is skipped at home and fails in CI: a skipped test is not a green test.
"""

import importlib.util
import os
import shutil

import pytest


def _is_missing(need: str) -> bool:
    kind, _, name = need.rpartition(":")
    if kind == "module":
        return importlib.util.find_spec(name) is None
    return shutil.which(name) is None


def pytest_runtest_setup(item: pytest.Item) -> None:
    needs = [need for marker in item.iter_markers("needs") for need in marker.args]
    missing = [need for need in needs if _is_missing(need)]
    if not missing:
        return
    reason = f"{', '.join(missing)} not found: make setup installs it"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
