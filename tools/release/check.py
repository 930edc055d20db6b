"""Does what is in dist/ install, each part by itself and from dist/ alone? Then runs what each README begins with.

    make release-check                  all of it; a minute or two, and a network for other people's libraries
    make release-check ONLY=go,java     these alone

Each part gets an empty folder and, where its language has one, an environment of its own. Of ours, every installer is
shown dist/ and nothing else. The programs talk to a server that was installed so too.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tools.release import versions
from tools.release.commands import DIST
from tools.release.image import why_no_image
from tools.release.make import SUMS, sums
from tools.release.versions import TREE
from tools.wheel.image import NEWER_SUITE, NEWER_WHEEL

START_S_MAX = 30
STOP_S_MAX = 20
PROGRAM_S_MAX = 120
PORTS = {f"FILA_{name}__LISTEN_ADDR": "127.0.0.1:0" for name in ("SERVER", "REDIS", "METRICS")}
GO_MODULE = "github.com/fila-mq/fila/sdks/go"
JAVA_CLASSPATH = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:build-classpath"
JAVA_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>first</artifactId><version>1</version>
  <repositories><repository><id>dist</id><url>file://{repository}</url></repository></repositories>
  <dependencies><dependency>
    <groupId>dev.fila</groupId><artifactId>fila-client</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""
SPARK_SESSION = (
    "from pyspark.sql import SparkSession\nspark = SparkSession.builder.master('local[1]').getOrCreate()\n"
)


class Bench:
    """An empty folder for each part, the release, and where its server listens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = versions.version()
        self.address = ""

    def place(self, name: str) -> Path:
        """Return a new, empty folder."""
        made = self.folder / name
        made.mkdir()
        return made

    def environment(self, name: str, *wheels: str) -> Path:
        """Return the programs' folder of a new environment of Python, with these wheels of dist/ in it."""
        place = self.folder / name
        run(sys.executable, "-m", "venv", place)
        if wheels:
            run(place / "bin/pip", "install", "--quiet", *(self.file(wheel) for wheel in wheels))
        return place / "bin"

    def file(self, pattern: str) -> Path:
        """Return the one file of dist/ that the pattern means."""
        [found] = DIST.glob(pattern)
        return found

    def program(self, readme: str, language: str, number: int = 0) -> str:
        """Return a program of a README, of this server."""
        text = (TREE / readme).read_text(encoding="utf-8")
        programs: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        return programs[number].replace("localhost:5555", self.address)


def main() -> None:
    """Check each part, and say which are good."""
    only = sys.argv[1].split(",") if len(sys.argv) > 1 else list(CHECKS)
    if unknown := set(only) - set(CHECKS):
        sys.exit(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    check_sums()
    with tempfile.TemporaryDirectory(prefix="fila-release-") as folder:
        bench = Bench(Path(folder))
        with server_of_dist(bench):
            for name in only:
                begun = time.monotonic()
                CHECKS[name](bench)
                print(f"{name}: good, {time.monotonic() - begun:.0f} s", flush=True)
    print("dist/ is good")


def check_sums() -> None:
    """Every file has its sum, and no other has one."""
    if not (DIST / SUMS).exists():
        sys.exit("dist/ holds no release: run make release first")
    if (DIST / SUMS).read_text(encoding="ascii") != sums(DIST):
        sys.exit(f"dist/{SUMS} does not fit the files beside it")


@contextmanager
def server_of_dist(bench: Bench) -> Iterator[None]:
    """A server that was installed as docs/install.md says, of dist/ alone, as long as the block lasts."""
    programs = bench.environment("server")
    run(programs / "pip", "install", "--quiet", "--require-hashes", "-r", DIST / "server.txt")
    run(programs / "pip", "install", "--quiet", "--no-index", "--find-links", DIST, "fila-server")
    said = run(programs / "fila-server", "--version")
    assert said.startswith(f"fila-server {bench.version} (commit "), said
    data = bench.place("data")
    log = data / "log"
    with log.open("w") as out:
        around = bare() | PORTS | {"FILA_DATA_DIR": str(data / "store")}
        server = subprocess.Popen([programs / "fila-server"], cwd=data, env=around, stderr=out)
    try:
        bench.address = address_in(log, server)
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(STOP_S_MAX) == 0, log.read_text()


def address_in(log: Path, server: subprocess.Popen[bytes]) -> str:
    """Wait until the server listens, and return where."""
    give_up_at = time.monotonic() + START_S_MAX
    while time.monotonic() < give_up_at and server.poll() is None:
        for line in log.read_text().splitlines():
            if '"server.started"' in line:
                return str(json.loads(line)["grpc"])
        time.sleep(0.05)
    raise SystemExit(f"the server did not start:\n{log.read_text()}")


def check_cli(bench: Bench) -> None:
    """README's first lines: the queue, and a message by the command line; then its program in Python."""
    programs = bench.environment("cli", "fila_mq-*.whl", "fila_cli-*.whl")
    fila = (programs / "fila", "--addr", bench.address)
    assert run(programs / "fila", "--version") == f"fila {bench.version}\n"
    run(*fila, "queue", "create", "orders", "--fairness-header", "tenant", "--throttle-header", "provider")
    run(*fila, "enqueue", "orders", "acme order 1", "--header", "tenant=acme")
    assert "acme order 1" in run(*fila, "consume", "orders", "--count", "1")
    hello = bench.place("hello") / "hello.py"
    hello.write_text(bench.program("README.md", "python"))
    assert "b'hello'" in run(programs / "python", hello)


def check_script(bench: Bench) -> None:
    """install.sh over loopback: from nothing, from another version, and away again."""
    prefix = bench.folder / "prefix"
    words = ("sh", bench.file("install.sh"), "--prefix", prefix)
    serve = partial(QuietFiles, directory=str(DIST))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        source = ("--from", f"http://127.0.0.1:{files.server_address[1]}")
        assert f"fila-server {bench.version} " in run(*words, *source)
        # What is there is made an older version of the same.
        (prefix / f"versions/{bench.version}").rename(prefix / "versions/0.0.1")
        (prefix / "bin").unlink()
        (prefix / "bin").symlink_to("versions/0.0.1/bin")
        assert "0.0.1 stays until the next upgrade" in run(*words, *source)
        files.shutdown()
    assert run(prefix / "bin/fila", "--version") == f"fila {bench.version}\n"
    run(*words, "--remove")
    assert not prefix.exists()


def check_python(bench: Bench) -> None:
    """The SDK alone."""
    programs = bench.environment("python", "fila_mq-*.whl")
    first = bench.place("python-program") / "first.py"
    first.write_text(bench.program("sdks/python/README.md", "python"))
    assert "one coffee" in run(programs / "python", first)


def check_javascript(bench: Bench) -> None:
    """The tarball, in a folder with nothing else."""
    place = bench.place("javascript")
    (place / "package.json").write_text('{"private": true, "type": "module"}')
    run(
        "npm",
        "install",
        "--no-fund",
        "--no-audit",
        "--loglevel=error",
        bench.file("fila-mq-client-*.tgz"),
        cwd=place,
    )
    (place / "first.js").write_text(bench.program("sdks/js/README.md", "js").replace("coffee'", "coffee-js'"))
    assert "one coffee" in run("node", "first.js", cwd=place)


def check_go(bench: Bench) -> None:
    """The module out of dist/go, in a cache of its own; others' modules come from this machine's, or its proxy."""
    place = bench.place("go")
    known = run("go", "env", "GOMODCACHE", "GOPROXY", cwd=place).split()
    around = {
        "GOPROXY": f"file://{DIST / 'go'},file://{known[0]}/cache/download,{known[1]}",
        "GONOSUMDB": GO_MODULE,
        "GOMODCACHE": str(place / "cache"),
        "GOFLAGS": "-modcacherw",
    }
    run("go", "mod", "init", "example/first", cwd=place, **around)
    (place / "main.go").write_text(bench.program("sdks/go/README.md", "go").replace('coffee"', 'coffee-go"'))
    run("go", "get", f"{GO_MODULE}@v{bench.version}", cwd=place, **around)
    run("go", "mod", "tidy", cwd=place, **around)
    assert "one coffee" in run("go", "run", ".", cwd=place, **around)


def check_java(bench: Bench) -> None:
    """The jar out of dist/maven, and its sources, javadoc and pom beside it."""
    place = bench.place("java")
    (place / "pom.xml").write_text(JAVA_PROJECT.format(repository=DIST / "maven", version=bench.version))
    # Maven looks into its own repository first: what `mvn install` once put there must not be taken for dist/'s.
    own = place / "repository"
    own.mkdir()
    known = Path.home() / ".m2/repository"
    for group in known.iterdir() if known.is_dir() else ():
        if group.name != "dev":
            (own / group.name).symlink_to(group)
    words = (f"-Dmaven.repo.local={own}", JAVA_CLASSPATH, f"-Dmdep.outputFile={place / 'classpath'}")
    run("mvn", "-B", "-ntp", "-q", *words, cwd=place)
    classpath = (place / "classpath").read_text()
    folder = DIST / f"maven/dev/fila/fila-client/{bench.version}"
    name = f"fila-client-{bench.version}"
    [taken] = [Path(jar) for jar in classpath.split(os.pathsep) if f"/{name}.jar" in jar]
    assert digest(taken) == digest(folder / f"{name}.jar")
    for kind in (".pom", "-sources.jar", "-javadoc.jar"):
        assert (folder / f"{name}{kind}").stat().st_size > 0
    program = bench.program("sdks/java/README.md", "java").replace('coffee"', 'coffee-java"')
    (place / "FirstSteps.java").write_text(program)
    assert "one coffee" in run("java", "-cp", classpath, "FirstSteps.java", cwd=place)


def check_spark(bench: Bench) -> None:
    """The pipeline beside a Spark of its own, without the SDK: it reads the queue that the command line made."""
    programs = bench.environment("spark", "fila_spark-*.whl")
    program = bench.place("spark-program") / "first.py"
    program.write_text(SPARK_SESSION + bench.program("pipeline/README.md", "python"))
    # As in a shell where the environment is activated: Spark starts Pythons of its own.
    path = f"{programs}{os.pathsep}{bare()['PATH']}"
    assert "fairness_key" in run(programs / "python", program, PATH=path)


def check_deb(_bench: Bench) -> None:
    """The Debian package, in a Debian of its own."""
    if missing := [name for name in ("debootstrap", "lintian") if not shutil.which(name)]:
        sys.exit(f"deb: {' and '.join(missing)} must be installed for it, or leave it out with ONLY=...")
    run(sys.executable, "-m", "tools.release.deb_check", cwd=TREE)


def check_image(_bench: Bench) -> None:
    """The image, as a container would run it."""
    if why := why_no_image():
        sys.exit(f"image: {why}")
    run(sys.executable, "-m", "tools.release.image_check", cwd=TREE)


def check_newer(_bench: Bench) -> None:
    """The server's wheel for the next Debian, in one of its own."""
    if why := why_no_image():
        sys.exit(f"newer: {why}")
    run(sys.executable, "-m", "tools.wheel.check", NEWER_SUITE, f"dist/{NEWER_WHEEL}", cwd=TREE)


def check_chart(_bench: Bench) -> None:
    """The Helm chart, without a cluster."""
    if why := why_no_image():
        sys.exit(f"chart: {why}")
    run(sys.executable, "-m", "tools.charts.check", cwd=TREE)


def check_terraform(bench: Bench) -> None:
    """The provider, through a life of what docs/deploy/terraform.md makes, with servers of dist/."""
    run(sys.executable, "-m", "tools.terraform.check", bench.folder / "server/bin", cwd=TREE)


def digest(file: Path) -> str:
    """Return its sum."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def bare() -> dict[str, str]:
    """Return this machine's environment, without what would lead a program back to the tree."""
    hidden = ("FILA_", "PYTHON", "VIRTUAL_ENV", "NODE_PATH", "CLASSPATH", "GOFLAGS", "MAKE")
    path = [
        folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder).is_relative_to(TREE)
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return kept | {"PATH": os.pathsep.join(path)}


def run(*command: str | Path, cwd: Path | None = None, **environ: str) -> str:
    """Run a command outside the tree, and return what it printed; a failure ends the check with all it said."""
    words = [str(word) for word in command]
    ran = subprocess.run(
        words,
        cwd=cwd or tempfile.gettempdir(),
        env=bare() | environ,
        capture_output=True,
        text=True,
        timeout=10 * PROGRAM_S_MAX,
        check=False,
    )
    if ran.returncode:
        sys.exit(f"{' '.join(words)} failed ({ran.returncode}):\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    return ran.stdout


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Say nothing."""


CHECKS: dict[str, Callable[[Bench], None]] = {
    "script": check_script,
    "cli": check_cli,
    "python": check_python,
    "javascript": check_javascript,
    "go": check_go,
    "java": check_java,
    "spark": check_spark,
    "deb": check_deb,
    "image": check_image,
    "newer": check_newer,
    "chart": check_chart,
    "terraform": check_terraform,
}

if __name__ == "__main__":
    main()
