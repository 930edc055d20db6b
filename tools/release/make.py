"""Makes a release: everything that people install, in dist/, with its sums.

    make release VERSION=0.1.0
    make release-check              installs each from dist/ alone, and runs the first program of each README

    *.whl, *.tar.gz, server.txt     the Python parts (the server's for two Debians), their sources, hashes
    fila-mq-client-*.tgz            the JavaScript SDK, as npm packs it
    *.deb                           the server as a package of the Debian that this is made on
    fila-*.tgz                      the Helm chart
    terraform/                      the provider for Terraform and OpenTofu
    *_oci.tar                       the server as an image, which docker, podman and containerd load
    maven/                          the Java SDK with its sources, its javadoc and its pom, as a Maven repository
    go/                             the Go SDK, as a module proxy serves it: GOPROXY=file://.../dist/go
    sbom/                           what each is made of, as CycloneDX
    install.sh                      fetches the server's parts, verifies their sums, installs, upgrades and removes them
    RELEASE.md                      the note, cut from the changelogs
    SHA256SUMS                      of every file: sha256sum -c SHA256SUMS

It is made aside, and dist/ gets all of it or nothing. A release that is there already is not replaced.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.release import notes, versions
from tools.release.commands import ASIDE, DIST, run
from tools.release.deb import deb, why_no_package
from tools.release.image import image, why_no_image
from tools.release.versions import TREE
from tools.site.make import SITE
from tools.wheel.image import NEWER_SUITE, NEWER_WHEEL

SUMS = "SHA256SUMS"
GO_TOOLS = TREE / "tools/release/modulezip"
JAVA_BOM = "org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom"


def main() -> None:
    """Make it, or say in a line why not."""
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    if refusal := why_not(version, TREE) or why_no_package() or why_no_image():
        sys.exit(refusal)
    shutil.rmtree(ASIDE, ignore_errors=True)
    made = ASIDE / "dist"
    (made / "sbom").mkdir(parents=True)
    note = notes.note(TREE, version)
    python_parts(made)
    javascript(made)
    java(made)
    go(made, version)
    deb(made, version)
    image(made, version)
    chart(made)
    newer(made)
    terraform(made, version)
    shutil.copy(TREE / "tools/release/install.sh", made)
    (made / "RELEASE.md").write_text(note, encoding="utf-8")
    (made / SUMS).write_text(sums(made), encoding="ascii")
    shutil.rmtree(DIST, ignore_errors=True)
    made.rename(DIST)
    print(f"dist/ has Fila {version}: {sum(path.is_file() for path in DIST.rglob('*'))} files")


def why_not(version: str, tree: Path) -> str:
    """Return why a release of this version cannot be made here, or nothing."""
    said = versions.version(tree)
    if not version:
        return f"say which version: make release VERSION={said}"
    if wrong := versions.others(tree):
        return "\n".join(wrong)
    if version != said:
        return f"the tree says {said}: run make version VERSION={version} and commit, or release {said}"
    if (tree / "dist" / SUMS).exists():
        return "dist/ holds a release already: move it away first"
    ask = ["git", "status", "--porcelain", "--untracked-files=no"]
    if changed := subprocess.run(ask, cwd=tree, capture_output=True, text=True, check=True).stdout:
        return f"a release is made of a commit, and these are not committed:\n{changed}".rstrip()
    return ""


def python_parts(made: Path) -> None:
    """Wheels and sources, and what the server's wheel is made of: libraries of Python, and those inside."""
    python = Path(sys.executable)
    parts = ASIDE / "python"
    run(TREE / "tools/wheel/build", DIST=str(parts), PYTHON=str(python))
    for file in parts.iterdir():
        file.rename(made / file.name)
    lock = shutil.copy(TREE / "requirements/server.txt", made / "server.txt")
    listed = python.with_name("cyclonedx-py")
    out = ("--output-file", made / "sbom/fila-server.cdx.json")
    run(listed, "requirements", lock, "--pyproject", TREE / "pyproject.toml", "--output-reproducible", *out)
    [wheel] = made.glob("fila_server-*.whl")
    libraries_of(wheel, made / "sbom/fila-server-libraries.cdx.json")
    for name, part in {"fila-mq": "sdks/python", "fila-cli": "cli", "fila-spark": "pipeline"}.items():
        wanted = ASIDE / f"{name}.txt"
        wanted.write_text("\n".join(dependencies(TREE / part)), encoding="ascii")
        out = ("--output-file", made / f"sbom/{name}.cdx.json")
        pyproject = TREE / part / "pyproject.toml"
        run(listed, "requirements", wanted, "--pyproject", pyproject, "--output-reproducible", *out)


def libraries_of(wheel: Path, listed: Path) -> None:
    """What auditwheel packed into it, as it says itself."""
    with zipfile.ZipFile(wheel) as packed:
        [inside] = [name for name in packed.namelist() if name.endswith("/sboms/auditwheel.cdx.json")]
        listed.write_bytes(packed.read(inside))


def newer(made: Path) -> None:
    """The server's wheel for the next Debian, its Python and its libraries."""
    folder = ASIDE / NEWER_SUITE
    run(sys.executable, "-m", "tools.wheel.newer", NEWER_SUITE, folder, cwd=TREE)
    [wheel] = folder.glob(NEWER_WHEEL)
    libraries_of(wheel, made / f"sbom/fila-server-libraries-{NEWER_SUITE}.cdx.json")
    shutil.move(wheel, made)


def dependencies(part: Path) -> list[str]:
    """Return what a distribution asks for, as its pyproject.toml has it: it pins nothing."""
    import tomllib

    return list(tomllib.loads((part / "pyproject.toml").read_text())["project"]["dependencies"])


def javascript(made: Path) -> None:
    """What npm would publish. npm builds it first."""
    sdk = TREE / "sdks/js"
    run("npm", "pack", "--silent", "--pack-destination", made, cwd=sdk)
    bom = run("npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", cwd=sdk)
    (made / "sbom/fila-client-js.cdx.json").write_text(bom, encoding="utf-8")


def java(made: Path) -> None:
    """What Maven would publish, in a repository that is a folder."""
    maven = ("mvn", "-B", "-ntp", "-q")
    target = f"-DaltDeploymentRepository=release::file://{made / 'maven'}"
    run(*maven, "deploy", "-DskipTests", target, cwd=TREE / "sdks/java")
    out = (f"-DoutputDirectory={made / 'sbom'}", "-DoutputName=fila-client-java.cdx")
    run(*maven, JAVA_BOM, "-DoutputFormat=json", *out, cwd=TREE / "sdks/java")


def go(made: Path, version: str) -> None:
    """The module as the go command itself would make it of a tag: of a clone, which is tagged here."""
    clone = ASIDE / "clone"
    run("git", "clone", "--quiet", TREE, clone)
    run("git", "tag", f"sdks/go/v{version}", cwd=clone)
    run("go", "run", ".", clone, "sdks/go", "HEAD", f"v{version}", made / "go", cwd=GO_TOOLS)
    out = ("-json", "-output", made / "sbom/fila-go.cdx.json")
    run("go", "tool", "cyclonedx-gomod", "mod", *out, clone / "sdks/go", cwd=GO_TOOLS)


def chart(made: Path) -> None:
    """The Helm chart, packed by the helm that tools/charts pins."""
    run(
        "go",
        "-C",
        TREE / "tools/charts",
        "tool",
        "helm",
        "package",
        TREE / "docs/deploy/helm/fila",
        "-d",
        made,
    )


def terraform(made: Path, version: str) -> None:
    """The provider as Terraform takes it: a zip with one program, of one system and machine."""
    source, name = TREE / "sdks/terraform", f"terraform-provider-fila_{version}"
    program = ASIDE / f"terraform-provider-fila_v{version}"
    words = ("build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
    run("go", *words, cwd=source, CGO_ENABLED="0", GOOS="linux", GOARCH="amd64")
    inside = zipfile.ZipInfo(program.name)
    inside.external_attr = 0o100755 << 16
    (made / "terraform").mkdir()
    with zipfile.ZipFile(made / f"terraform/{name}_linux_amd64.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(inside, program.read_bytes(), zipfile.ZIP_DEFLATED)
    out = ("-json", "-output", made / "sbom/terraform-provider-fila.cdx.json")
    run("go", "tool", "cyclonedx-gomod", "mod", *out, ASIDE / "clone/sdks/terraform", cwd=GO_TOOLS)


def sums(folder: Path) -> str:
    """Return the sum of each file below a folder, as sha256sum writes them. The sums themselves have none, and neither
    has the documentation's site, which `make site` may put beside a release later."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name != SUMS and not path.is_relative_to(folder / SITE.name)
    )
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files
    )


if __name__ == "__main__":
    main()
