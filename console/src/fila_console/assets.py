"""Scripts, styles and the font: read once, kept in memory, served under the digest of all of them.

Nothing else of the disk can be reached: what is served is a list made at the start. A new version has another digest,
so browsers may keep each file for ever and never mix two versions.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fila_console.vendored import VENDOR

_HERE = Path(__file__).resolve().parent
_IN_CHECKOUT = _HERE.parents[1] / "node_modules"
_IN_WHEEL = _HERE / "vendor"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}


class NotInstalled(Exception):
    """What others made is not there; the text says how it comes."""


@dataclass(frozen=True, slots=True)
class _Asset:
    kind: str
    body: bytes
    zipped: bytes | None


class Assets:
    """All files that browsers may ask for."""

    def __init__(self) -> None:
        found = {name: _vendor_file(name) for name in VENDOR}
        for folder, pattern in (("static", "*.css"), ("static", "*.svg"), ("static/js", "*.js")):
            found |= {path.name: path for path in sorted((_HERE / folder).glob(pattern))}
        self._assets = {name: _read(path) for name, path in found.items()}
        together = hashlib.sha256()
        for name, asset in sorted(self._assets.items()):
            together.update(name.encode() + b"\0" + asset.body + b"\0")
        self.digest = together.hexdigest()[:16]

    def url(self, name: str) -> str:
        """Where browsers find a file; KeyError if there is none of that name."""
        if name not in self._assets:
            raise KeyError(name)
        return f"/assets/{self.digest}/{name}"

    async def serve(self, request: Request) -> Response:
        """Answer with one file."""
        asset = self._assets.get(request.path_params["name"])
        if asset is None or request.path_params["digest"] != self.digest:
            return PlainTextResponse("There is no such file; load the page again.\n", 404)
        headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
        if asset.zipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                asset.zipped, media_type=asset.kind, headers=headers | {"content-encoding": "gzip"}
            )
        return Response(asset.body, media_type=asset.kind, headers=headers)


def _vendor_file(name: str) -> Path:
    for path in (_IN_WHEEL / name, _IN_CHECKOUT / VENDOR[name]):
        if path.is_file():
            return path
    raise NotInstalled(
        "the console's scripts and font are not installed here: run make setup-console in a checkout, or install a "
        "wheel that was built after it"
    )


def _read(path: Path) -> _Asset:
    body = path.read_bytes()
    kind = _TYPES[path.suffix]
    zipped = gzip.compress(body, 9, mtime=0) if path.suffix != ".woff2" else None
    return _Asset(kind, body, zipped)
