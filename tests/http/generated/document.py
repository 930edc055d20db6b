"""What the document says of a call, and how what is given for it is parted into path, query and headers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
NEWEST = ROOT / "docs/openapi.yaml"
OF_3_0 = ROOT / "docs/openapi-3.0.yaml"


@dataclass(frozen=True)
class Operation:
    """One call."""

    name: str
    verb: str
    path: str
    in_path: tuple[str, ...]
    in_query: frozenset[str]
    is_keyless: bool
    """It takes no key beside the one in its address."""

    def parted(self, given: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a call by their places; KeyError where the document has none of that name."""
        rest = dict(given)
        parts = {"path": {name: rest.pop(name) for name in self.in_path}, "header": rest.pop("headers", {})}
        parts["query"] = {name: rest.pop(name) for name in [*rest] if name in self.in_query}
        if rest:
            raise KeyError(f"{self.name} has no parameter {sorted(rest)}")
        return {place: found for place, found in parts.items() if found}


def operations() -> dict[str, Operation]:
    """All that the document has, by name."""
    found = {}
    for path, verbs in yaml.load(NEWEST.read_text(), yaml.CSafeLoader)["paths"].items():
        for verb, said in verbs.items():
            places = [(each["in"], each["name"]) for each in said.get("parameters", [])]
            found[said["operationId"]] = Operation(
                said["operationId"],
                verb.upper(),
                path,
                tuple(name for place, name in places if place == "path"),
                frozenset(name for place, name in places if place == "query"),
                said.get("security") == [{}],
            )
    return found
