"""Makes the server's image from the Containerfile and the wheels of a release: an OCI archive.

It begins with Debian's own packages by debootstrap, since no base image is fetched. buildah takes the steps, isolated
by chroot alone, so it needs root and no container runtime.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.release.commands import ASIDE, run
from tools.release.versions import TREE
from tools.wheel.image import CERTIFICATES, INSIDE, OWN_SUITE, PASSED_ON

BASE = f"docker.io/library/debian:{OWN_SUITE}-slim"
"""What the Containerfile begins with, as buildah looks for it."""
COMPILED = ("/usr/lib/python3.11", "/opt/fila/lib")
"""Where the image has modules of Python."""
# What Debian's slim images leave out, too.
NOT_SLIM = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/cache/apt",
    "var/lib/apt/lists",
)
COMPILE = f"python3 -m compileall -q -f --invalidation-mode unchecked-hash {' '.join(COMPILED)}"
OF_THIS_MACHINE = ("etc/pip.conf", INSIDE.lstrip("/"), "etc/resolv.conf")


def why_no_image() -> str:
    """Return why the image cannot be made on this machine, or nothing."""
    if missing := [name for name in ("buildah", "debootstrap") if not shutil.which(name)]:
        return f"a release has an image: install {' and '.join(missing)} (apt install buildah debootstrap)"
    return "" if os.geteuid() == 0 else "a release has an image, and making one takes root: sudo make release"


def image(made: Path, version: str) -> None:
    """Leave fila-server_VERSION_oci.tar in `made`, where the wheels are. It loads as `fila-server:VERSION`."""
    folder = ASIDE / "image"
    shutil.rmtree(folder, ignore_errors=True)
    context = folder / "context"
    (context / "requirements").mkdir(parents=True)
    (context / "dist").mkdir()
    shutil.copy(TREE / "requirements/server.txt", context / "requirements")
    for wheel in made.glob("*.whl"):
        shutil.copy(wheel, context / "dist")
    store = Store(folder / "store")
    try:
        store.take_base(_bare_debian(folder))
        build = (
            "build",
            "--isolation=chroot",
            "--pull-never",
            "--layers=false",
            "--format=oci",
            "-t",
            "building",
        )
        store.run(*build, "-f", str(TREE / "Containerfile"), str(context))
        target = made / f"fila-server_{version}_oci.tar"
        store.export("localhost/building", f"oci-archive:{target}:fila-server:{version}")
    finally:
        store.drop()


class Store:
    """Where buildah keeps what it works on: a folder of the release's own, on any file system."""

    def __init__(self, folder: Path) -> None:
        # Sockets are below the second, and their names may not be long.
        self._state = Path(tempfile.mkdtemp(prefix="fila-image-"))
        self._words = ("--root", str(folder), "--runroot", str(self._state), "--storage-driver", "vfs")

    def run(self, *words: str) -> str:
        """Run buildah, and return what it printed."""
        return run("buildah", *self._words, *words).strip()

    def take_base(self, root: Path) -> None:
        """Make `root` the image that the Containerfile begins with, with what reaches packages from this machine."""
        made = self.run("from", "scratch")
        inside = Path(self.run("mount", made))
        subprocess.run(["cp", "-a", f"{root}/.", str(inside)], check=True)
        (inside / INSIDE.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CERTIFICATES, inside / INSIDE.lstrip("/"))
        (inside / "etc/pip.conf").write_text(_pip_settings())
        self.run("commit", "--rm", made, BASE)

    def export(self, image: str, target: str) -> None:
        """Write an image as one layer, without what it had of this machine, and with the commit's time."""
        made = self.run("from", "--pull-never", image)
        # Every file gets the commit's time. Python would then hold what it compiled for older than its source, and
        # compile it again at each start, which takes longer than the start itself.
        self.run("run", "--isolation=chroot", "--user=root", made, "--", "sh", "-c", COMPILE)
        inside = Path(self.run("mount", made))
        for name in OF_THIS_MACHINE:
            (inside / name).unlink(missing_ok=True)
        when = run("git", "show", "-s", "--format=%ct", "HEAD").strip()
        self.run(
            "commit",
            "--squash",
            "--format=oci",
            "--disable-compression=false",
            f"--timestamp={when}",
            "--rm",
            made,
            target,
        )

    def drop(self) -> None:
        """Forget all of it."""
        subprocess.run(["buildah", *self._words, "rm", "--all"], check=False, capture_output=True)
        shutil.rmtree(self._state, ignore_errors=True)


def _bare_debian(folder: Path) -> Path:
    root = folder / "debian"
    run("debootstrap", "--variant=minbase", OWN_SUITE, root)
    for name in NOT_SLIM:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/hosts").touch()
    return root


def _pip_settings() -> str:
    passed = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    named = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in passed.items()
        if name.startswith("PIP_")
    }
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in {**named, "cert": INSIDE}.items())
