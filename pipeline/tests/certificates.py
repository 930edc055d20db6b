"""Certificates for a test's broker and its clients, made by the command openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make_authority(folder: Path, name: str) -> None:
    """Write NAME.pem and NAME.key: an authority."""
    _openssl(
        *("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", f"/CN={name}"),
        *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"),
    )


def make_certificate(folder: Path, name: str, alternative: str, signer: str, days: int = 2) -> None:
    """Write NAME.pem and NAME.key, which `signer` has signed for the `alternative` names; fewer than 0 days: over."""
    extension, asked = folder / f"{name}.ext", folder / f"{name}.csr"
    extension.write_text(f"subjectAltName={alternative}\n")
    _openssl(
        "req", "-new", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", asked
    )
    _openssl(
        *(
            "x509",
            "-req",
            "-days",
            str(days),
            "-in",
            asked,
            "-extfile",
            extension,
            "-out",
            folder / f"{name}.pem",
        ),
        *("-CA", folder / f"{signer}.pem", "-CAkey", folder / f"{signer}.key", "-CAcreateserial"),
    )


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
