"""Certificates for brokers and clients that speak TLS, made anew for each run."""

from __future__ import annotations

import subprocess
from pathlib import Path

NAME = "fila.test"
"""What the broker's certificate is made out to; no address of its is."""

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make(folder: Path) -> None:
    """Write `ca`, `other-ca`, `server`, `shop` (spiffe://corp/shop) and `nobody`, each as `.pem` and `.key`."""
    folder.mkdir(parents=True)
    for authority in ("ca", "other-ca"):
        _openssl(
            *("req", "-x509", *_CURVE, "-days", "2", "-subj", f"/CN={authority}"),
            *("-keyout", folder / f"{authority}.key", "-out", folder / f"{authority}.pem"),
        )
    for name, alternative in (
        ("server", f"DNS:{NAME}"),
        ("shop", "URI:spiffe://corp/shop"),
        ("nobody", "DNS:nobody.example"),
    ):
        _sign(folder, name, alternative)


def _sign(folder: Path, name: str, alternative: str) -> None:
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
    _openssl(
        *("req", "-new", *_CURVE, "-subj", f"/CN={name}"),
        *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"),
    )
    _openssl(
        *("x509", "-req", "-days", "2", "-in", folder / f"{name}.csr", "-extfile", folder / f"{name}.ext"),
        *("-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial"),
        *("-out", folder / f"{name}.pem"),
    )


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)  # noqa: S607 - of the PATH
