"""Certificates for brokers and clients that speak TLS, made anew for each run."""

from __future__ import annotations

import subprocess
from pathlib import Path

NAME = "fila.test"
"""What the broker's certificate is made out to; no address of its is."""

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make(folder: Path) -> None:
    """Write `ca`, `other-ca`, `server`, `shop` (spiffe://corp/shop), `nobody`, `stranger` (whom `other-ca` signed), and
    `expired` and `early`, which are as `server` is but for their time; each as `.pem` and `.key`."""
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
    _sign(folder, "stranger", "DNS:stranger.example", authority="other-ca")
    _sign(folder, "expired", f"DNS:{NAME}", first_day="20200101000000Z", last_day="20200102000000Z")
    _sign(folder, "early", f"DNS:{NAME}", first_day="20990101000000Z", last_day="20990102000000Z")


def _sign(
    folder: Path,
    name: str,
    alternative: str,
    *,
    authority: str = "ca",
    first_day: str = "",
    last_day: str = "",
) -> None:
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
    _openssl(
        *("req", "-new", *_CURVE, "-subj", f"/CN={name}"),
        *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"),
    )
    if not first_day:
        _openssl(
            *(
                "x509",
                "-req",
                "-days",
                "2",
                "-in",
                folder / f"{name}.csr",
                "-extfile",
                folder / f"{name}.ext",
            ),
            *("-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key", "-CAcreateserial"),
            *("-out", folder / f"{name}.pem"),
        )
        return
    # Only `ca` takes a first day, and it wants a database.
    (folder / f"{name}.txt").write_text("")
    (folder / f"{name}.conf").write_text(
        f"[ca]\ndefault_ca=x\n[x]\ndatabase={folder / name}.txt\nnew_certs_dir={folder}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
    )
    _openssl(
        *("ca", "-batch", "-notext", "-config", folder / f"{name}.conf", "-extfile", folder / f"{name}.ext"),
        *("-cert", folder / f"{authority}.pem", "-keyfile", folder / f"{authority}.key"),
        *("-startdate", first_day, "-enddate", last_day),
        *("-in", folder / f"{name}.csr", "-out", folder / f"{name}.pem"),
    )


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)  # noqa: S607 - of the PATH
