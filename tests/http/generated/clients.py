"""A client in each language: made by its generator, then asked in this process, or over the pipes of its own."""

from __future__ import annotations

import base64
import importlib
import inspect
import io
import json
import os
import subprocess
import sys
import typing
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.http.generated.document import NEWEST, OF_3_0, ROOT, Operation, operations

TOOLS = ROOT / "tools/clients"
PACKAGE = "fila_generated"


def run(*command: str | Path, cwd: Path, **environ: str) -> None:
    """A generator or a compiler; AssertionError with what it said where it failed."""
    words = [str(each) for each in command]
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-6000:]}{done.stderr[-6000:]}"


class Called:
    """Knows what was called, and what of the document was not."""

    def __init__(self) -> None:
        self.operations = operations()
        self.never = set(self.operations)

    def found(self, operation: str) -> Operation:
        self.never.discard(operation)
        return self.operations[operation]


# Python, by openapi-python-client.


class PythonClient(Called):
    """The generated package, imported here."""

    def __init__(self, folder: Path, base: str, key: str) -> None:
        super().__init__()
        config = folder / "config.yaml"
        config.write_text("post_hooks: []\n")
        made = folder / PACKAGE
        command = ("generate", "--path", NEWEST, "--config", config, "--meta", "none", "--output-path", made)
        run(
            Path(sys.executable).with_name("openapi-python-client"), *command, "--fail-on-warning", cwd=folder
        )
        sys.path.insert(0, str(folder))
        self._modules = {
            each.stem.replace("_", ""): each.relative_to(folder) for each in made.glob("api/*/*.py")
        }
        self._errors: Any = importlib.import_module(f"{PACKAGE}.models").Problem
        self._files: Any = importlib.import_module(f"{PACKAGE}.types").File
        made_of: Any = importlib.import_module(f"{PACKAGE}.client")
        self._client: Any = made_of.AuthenticatedClient(base, key)
        self._keyless: Any = made_of.Client(base)

    def close(self) -> None:
        sys.path.pop(0)
        for name in [each for each in sys.modules if each.partition(".")[0] == PACKAGE]:
            del sys.modules[name]

    def call(self, operation: str, body: Any = None, *, raw: bytes | None = None, **given: Any) -> Any:
        client = self._keyless if self.operations[operation].is_keyless else self._client
        answer = self._of(operation).sync_detailed(
            client=client, **self._arguments(operation, body, raw, given)
        )
        assert answer.status_code == 200, answer
        told = json.loads(answer.content)
        assert _same(answer.parsed.to_dict(), told), (operation, answer.parsed, told)
        return told

    def refused(self, operation: str, body: Any = None, **given: Any) -> Any:
        answer = self._of(operation).sync_detailed(
            client=self._client, **self._arguments(operation, body, None, given)
        )
        assert isinstance(answer.parsed, self._errors)
        return answer.parsed.to_dict()

    def first(self, operation: str, **given: Any) -> str:
        # What it makes for a call reads its whole answer: for a stream there is what the call is made of.
        kwargs = self._of(operation)._get_kwargs(**self._arguments(operation, None, None, given))
        with self._client.get_httpx_client().stream(**kwargs) as answer:
            assert answer.status_code == 200
            lines = (str(line) for line in answer.iter_lines())
            return next(line.removeprefix("data:") for line in lines if line.startswith("data:"))

    def _of(self, operation: str) -> Any:
        path = self._modules[self.found(operation).name.lower()]
        return importlib.import_module(".".join(path.with_suffix("").parts))

    def _arguments(
        self, operation: str, body: Any, raw: bytes | None, given: dict[str, Any]
    ) -> dict[str, Any]:
        parts = self.operations[operation].parted(given)
        module: ModuleType = self._of(operation)
        hints = typing.get_type_hints(module.sync_detailed)
        names = {each.replace("_", ""): each for each in inspect.signature(module.sync_detailed).parameters}
        arguments: dict[str, Any] = {}
        for name, value in {k: v for part in parts.values() for k, v in part.items()}.items():
            known = names[name.replace("-", "").lower()]
            arguments[known] = (
                datetime.fromisoformat(value) if datetime in typing.get_args(hints[known]) else value
            )
        if raw is not None:
            arguments["body"] = self._files(payload=io.BytesIO(raw))
        elif body is not None:
            (model,) = [each for each in _alternatives(hints["body"]) if hasattr(each, "from_dict")]
            arguments["body"] = model.from_dict(body)
            assert _same(arguments["body"].to_dict(), body), operation
        return arguments


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) or (hint,)


def _same(one: Any, other: Any) -> bool:
    """Whether nothing was lost or added; moments may be written in another way."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    return bool(one == other)


# TypeScript and Go, each in a process that carries out what it is told in a line, and answers in one.


class Piped(Called):
    """The other side of such a process."""

    def __init__(self, *command: str | Path, cwd: Path) -> None:
        super().__init__()
        words = [str(each) for each in command]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process: subprocess.Popen[str] = subprocess.Popen(words, cwd=cwd, text=True, **pipes)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(20)

    def call(self, operation: str, body: Any = None, *, raw: bytes | None = None, **given: Any) -> Any:
        told = self._ask(
            operation, given, body=body, raw=None if raw is None else base64.b64encode(raw).decode()
        )
        assert told["status"] == 200, (operation, told)
        return told["data"]

    def first(self, operation: str, **given: Any) -> str:
        told = self._ask(operation, given, stream=True)
        assert told["status"] == 200, (operation, told)
        return str(told["data"])

    def refused(self, operation: str, body: Any = None, **given: Any) -> Any:
        told = self._ask(operation, given, body=body)
        assert told["status"] >= 400, (operation, told)
        return told["problem"]

    def _ask(self, operation: str, given: dict[str, Any], **more: Any) -> Any:
        found = self.found(operation)
        call: dict[str, Any] = {
            "operation": operation,
            "verb": found.verb,
            "url": found.path,
            "inPath": found.in_path,
        }
        call |= {"parameters": found.parted(given), "keyless": found.is_keyless, **more}
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client ended at {operation}"
        told = json.loads(line)
        self.heard(call, told)
        return told

    def heard(self, call: dict[str, Any], told: dict[str, Any]) -> None:
        """For who keeps what was said."""


class TypeScriptClient(Piped):
    """By openapi-typescript, called through openapi-fetch; what was called and answered is then judged by tsc."""

    def __init__(self, folder: Path, base: str, key: str) -> None:
        self._folder = folder
        (folder / "node_modules").symlink_to(TOOLS / "node_modules")
        (folder / "package.json").write_text('{ "type": "module" }')
        (folder / "run.mjs").write_text((TOOLS / "run.mjs").read_text())
        self._bin = TOOLS / "node_modules/.bin"
        run(self._bin / "openapi-typescript", NEWEST, "--output", folder / "fila.ts", cwd=folder)
        self._said: list[str] = []
        super().__init__("node", "run.mjs", base, key, cwd=folder)

    def heard(self, call: dict[str, Any], told: dict[str, Any]) -> None:
        options: dict[str, Any] = {}
        if call["parameters"]:
            options["params"] = call["parameters"]
        if call.get("body") is not None:
            options["body"] = call["body"]
        literal = f"{json.dumps(call['url'])}, {json.dumps(options)}"
        if call.get("raw") is None:
            self._said.append(f"void client.{call['verb']}({literal});")
        if told["status"] == 200 and not call.get("stream"):
            response = f'paths[{json.dumps(call["url"])}]["{call["verb"].lower()}"]["responses"][200]'
            answer = f'{response}["content"]["application/json"]'
            self._said.append(f"({json.dumps(told['data'])}) satisfies {answer};")

    def judge(self) -> None:
        """Every call as a program would write it, and every answer as the type that it has."""
        head = 'import createClient from "openapi-fetch";\nimport type { paths } from "./fila.js";\n'
        said = "\n".join(self._said)
        (self._folder / "said.ts").write_text(f"{head}const client = createClient<paths>();\n{said}\n")
        strict = (
            "--strict",
            "--exactOptionalPropertyTypes",
            "--noEmit",
            "--module",
            "nodenext",
            "--types",
            "node",
        )
        run(self._bin / "tsc", *strict, "--skipLibCheck", "false", "said.ts", cwd=self._folder)


class GoClient(Piped):
    """By oapi-codegen, of the document in 3.0; its calls are found by their names."""

    def __init__(self, folder: Path, base: str, key: str) -> None:
        for name in ("go.mod", "go.sum", "main.go"):
            (folder / name).write_text((TOOLS / "go" / name).read_text())
        (folder / "filaclient").mkdir()
        generate = ("go", "tool", "oapi-codegen", "-config", TOOLS / "go/oapi-codegen.yaml", OF_3_0)
        run(*generate, cwd=folder, GOFLAGS="-mod=mod")
        run("go", "build", "-o", "client", ".", cwd=folder)
        super().__init__(folder / "client", base, key, cwd=folder)
