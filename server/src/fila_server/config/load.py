"""From file and environment to one checked Config. The settings themselves are in schema.py.

    --config PATH, else ./fila.toml, else /etc/fila/fila.toml, else nothing      (the file)
      └─ FILA_SECTION__KEY, FILA_DATA_DIR                                          (wins over it)
           └─ --listen, --data-dir, --log-level                                    (win over both)

A typing error in a setting is found here, before anything is opened: an unknown section
or key, a value of the wrong kind or out of bounds stops the start with its file, line and
key and what would be right. Silence would mean running with a default nobody asked for.
"""

from __future__ import annotations

import difflib
import re
import textwrap
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import orjson

from fila_server.config.cluster import Addresses, GroupName, LogPlace
from fila_server.config.kafka import KafkaSettings
from fila_server.config.kinds import Address, AddressOrOff, Duration, HostNames, Size
from fila_server.config.schema import Config
from fila_server.config.sections import Section
from fila_server.config.together import check
from fila_server.errors import ConfigInvalid

__all__ = [
    "Config",
    "LoadedConfig",
    "Setting",
    "as_toml",
    "load",
    "reference_tables",
    "sample",
    "settings_by_section",
]

FILE_NAME = "fila.toml"
SYSTEM_FILE = Path("/etc/fila") / FILE_NAME

GONE = {"server.edge": "there is one edge, and nothing to choose"}
"""Settings of earlier versions, and why there is none of that name."""

RENAMED = {"redis.bind_address": "listen_addr"}
"""Settings by their earlier names, which are still read: the key that each has now."""

_KINDS_WITH_A_FORM = (
    Address,
    AddressOrOff,
    HostNames,
    Duration,
    Size,
    KafkaSettings,
    GroupName,
    LogPlace,
    Addresses,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: what it may be, and what it is for."""

    section: str
    key: str
    kind: Any
    default: Any
    meta: msgspec.Meta

    @property
    def name(self) -> str:
        """`section.key`, as people write it."""
        return f"{self.section}.{self.key}"

    @property
    def expected(self) -> str:
        """What would be right, to finish "must be ..."."""
        if self.kind in _KINDS_WITH_A_FORM:
            bounds = f" from {self.meta.ge} to {self.meta.le} ms" if self.meta.ge is not None else ""
            return f"{self.kind.expected}{bounds}"
        if get_origin(self.kind) is Literal:
            return " or ".join(f'"{choice}"' for choice in get_args(self.kind))
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            return f"a whole number from {self.meta.ge} to {self.meta.le}"
        return "a printable text" + (" that is not empty" if self.meta.min_length else "")

    def check(self, raw: object) -> Any:
        """Return the value as the struct holds it; ValueError when it is not `expected`."""
        if self.kind in _KINDS_WITH_A_FORM:
            value = self.kind.parse(raw)
        elif get_origin(self.kind) is Literal:
            if raw not in get_args(self.kind):
                raise ValueError
            return raw
        elif type(raw) is self.kind:
            value = raw
        else:
            raise ValueError
        meta = self.meta
        if (meta.ge is not None and value < meta.ge) or (meta.le is not None and value > meta.le):
            raise ValueError
        if meta.min_length is not None and len(value) < meta.min_length:
            raise ValueError
        if isinstance(value, str) and not value.isprintable():
            raise ValueError
        return value

    def check_text(self, raw: str) -> Any:
        """As `check`, for a value from the environment, where everything is text."""
        if self.kind is int:
            if not re.fullmatch(r"-?[0-9]{1,20}", raw):
                raise ValueError
            return self.check(int(raw))
        if self.kind is bool:
            if raw.lower() not in ("true", "false", "1", "0"):
                raise ValueError
            return raw.lower() in ("true", "1")
        return self.check(raw)


def settings_by_section() -> dict[str, dict[str, Setting]]:
    """Every setting there is, in the order of schema.py."""
    return {
        name: {setting.key: setting for setting in _settings_of(name, section)}
        for name, section in typing.get_type_hints(Config).items()
    }


def _settings_of(section_name: str, section: type[Section]) -> list[Setting]:
    hints = typing.get_type_hints(section, include_extras=True)
    defaults = section()
    settings = []
    for key, hint in hints.items():
        assert get_origin(hint) is Annotated, "every setting says its bounds and its reason"
        kind, meta = get_args(hint)[:2]
        settings.append(Setting(section_name, key, kind, getattr(defaults, key), meta))
    return settings


_SETTINGS = MappingProxyType(settings_by_section())


@dataclass(slots=True)
class LoadedConfig:
    """The effective configuration, and where each value came from."""

    config: Config
    origins: dict[str, str] = field(default_factory=dict)
    """`section.key` -> "default", "FILE:LINE", the environment variable's name, or the flag."""


def load(
    path: Path | None,
    environ: Mapping[str, str],
    cwd: Path,
    flags: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> LoadedConfig:
    """Read the file there is (or `path`, which must exist), then the environment, then the flags: by `section.key`, the
    flag's name and its value."""
    values: dict[str, dict[str, Any]] = {section: {} for section in _SETTINGS}
    origins = {setting.name: "default" for keys in _SETTINGS.values() for setting in keys.values()}
    loaded = LoadedConfig(Config(), origins)
    file = path if path is not None else _find_file(cwd)
    if file is not None:
        _read_file(file, values, origins)
    _read_environment(environ, values, loaded)
    for name, (flag, text) in flags.items():
        section_name, _, key = name.partition(".")
        _set_from_text(_SETTINGS[section_name][key], flag, text, values, loaded)
    sections = {name: section(**values[name]) for name, section in typing.get_type_hints(Config).items()}
    loaded.config = Config(**sections)
    try:
        check(loaded.config)
    except ConfigInvalid as error:
        raise ConfigInvalid(str(error), source=_place(origins[error.key]), key=error.key) from None
    return loaded


def _place(origin: str) -> str:
    """Where a value came from, as an error names it; nothing for a default."""
    if origin == "default":
        return ""
    return f"environment variable {origin}" if origin.startswith("FILA_") else origin


def as_toml(value: object) -> str:
    """Write a value the way the file would."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Duration):
        return f'"{int(value)}ms"'
    if isinstance(value, Size):
        return f'"{int(value)}b"'
    if isinstance(value, KafkaSettings):
        pairs = [f'"{name}" = {orjson.dumps(text).decode()}' for name, text in value]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    return str(value) if isinstance(value, int) else orjson.dumps(str(value)).decode()


def _find_file(cwd: Path) -> Path | None:
    for file in (cwd / FILE_NAME, SYSTEM_FILE):
        if file.exists():
            return file
    return None


def _read_file(file: Path, values: dict[str, dict[str, Any]], origins: dict[str, str]) -> None:
    source = str(file)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigInvalid(f"cannot be read: {error.strerror}", source=source) from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid("is not UTF-8 text", source=source) from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(source, text, str(error)) from error
    for section, table in tables.items():
        if section not in _SETTINGS:
            raise _unknown_section(source, text, section, table)
        if not isinstance(table, dict):
            raise ConfigInvalid(
                f"{section} must be a section: write [{section}] on a line of its own",
                source=source, line=_line_of(text, section, None), key=section,
            )  # fmt: skip
        for key, raw in table.items():
            line = _line_of(text, section, key)
            setting = _setting(section, key)
            if setting is None:
                raise _unknown_key(section, key, source=source, line=line)
            if setting.key != key and setting.key in table:
                raise _named_twice(section, key, setting, source=source, line=line)
            try:
                values[section][setting.key] = setting.check(raw)
            except ValueError:
                raise ConfigInvalid(
                    f"{setting.name} must be {setting.expected}, got {_shown(raw)}",
                    source=source, line=line, key=setting.name,
                ) from None  # fmt: skip
            origins[setting.name] = f"{source}:{line}"


def _read_environment(
    environ: Mapping[str, str], values: dict[str, dict[str, Any]], loaded: LoadedConfig
) -> None:
    given = {name: text for name, text in environ.items() if name.startswith("FILA_")}
    if "FILA_DATA_DIR" in given:
        # The short name first, so that the exact one wins where both are set.
        _set_from_text(
            _SETTINGS["server"]["data_dir"], "FILA_DATA_DIR", given["FILA_DATA_DIR"], values, loaded
        )
    for name, text in sorted(given.items()):
        section, separator, key = name.removeprefix("FILA_").lower().partition("__")
        if not separator:
            continue
        if section not in _SETTINGS:
            # Two underscores make it a setting: nobody else's name, so a typing error in ours.
            raise ConfigInvalid(
                f"unknown section [{section}]; {_nearest(section, list(_SETTINGS))}",
                source=f"environment variable {name}", key=section,
            )  # fmt: skip
        setting = _setting(section, key)
        if setting is None:
            raise _unknown_key(section, key, source=f"environment variable {name}")
        if setting.key != key and f"FILA_{section}__{setting.key}".upper() in given:
            raise _named_twice(section, key, setting, source=f"environment variable {name}")
        _set_from_text(setting, name, text, values, loaded)


def _named_twice(section: str, key: str, setting: Setting, *, source: str, line: int = 0) -> ConfigInvalid:
    what = f"{section}.{key} is the earlier name of {setting.name}, which is set too; remove it"
    return ConfigInvalid(what, source=source, line=line, key=setting.name)


def _setting(section: str, key: str) -> Setting | None:
    """A setting by its name, or by its earlier one."""
    return _SETTINGS[section].get(RENAMED.get(f"{section}.{key}", key))


def _set_from_text(
    setting: Setting, name: str, text: str, values: dict[str, dict[str, Any]], loaded: LoadedConfig
) -> None:
    try:
        values[setting.section][setting.key] = setting.check_text(text)
    except ValueError:
        raise ConfigInvalid(
            f"{setting.name} must be {setting.expected}, got {_shown(text)}",
            source=name if name.startswith("--") else f"environment variable {name}", key=setting.name,
        ) from None  # fmt: skip
    loaded.origins[setting.name] = name


def _unknown_key(section: str, key: str, *, source: str, line: int = 0) -> ConfigInvalid:
    name = f"{section}.{key}"
    what = f"unknown key {name}; {_nearest(key, list(_SETTINGS[section]))}"
    if name in GONE:
        what = f"{name} is gone: {GONE[name]}; remove it"
    return ConfigInvalid(what, source=source, line=line, key=name)


def _unknown_section(source: str, text: str, section: str, table: object) -> ConfigInvalid:
    line = _line_of(text, section, None)
    if isinstance(table, dict):
        what = f"unknown section [{section}]; {_nearest(section, list(_SETTINGS))}"
        return ConfigInvalid(what, source=source, line=line, key=section)
    homes = [name for name, keys in _SETTINGS.items() if section in keys]
    where = f"put it under [{homes[0]}]" if homes else "every key belongs to a section"
    return ConfigInvalid(
        f"{section} stands outside of any section; {where}", source=source, line=line, key=section
    )


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _shown(raw: object) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, dict):
        return "another table"  # there may be secrets in it
    shown = orjson.dumps(raw).decode() if isinstance(raw, str) else " ".join(str(raw).split())
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _syntax_error(source: str, text: str, message: str) -> ConfigInvalid:
    match = re.search(r"\(at line (\d+), column \d+\)", message)
    line = int(match[1]) if match else len(text.splitlines()) or 1
    what = re.sub(r"\s*\(at .*\)$", "", message)
    return ConfigInvalid(f"not valid TOML: {what[:1].lower()}{what[1:]}", source=source, line=line)


def _line_of(text: str, section: str, key: str | None) -> int:
    """Find the line a person would look at: tomllib does not tell where a value stood."""
    current = ""
    section_line = 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line)
        if header is not None:
            current = header[1].strip("\"'")
            if current == section:
                section_line = section_line or number
            elif key is not None and current == f"{section}.{key}":
                return number
            continue
        assigned = re.match(r"\s*([A-Za-z0-9_\-\"'. ]+?)\s*=", line)
        if assigned is None:
            continue
        path = [part.strip().strip("\"'") for part in assigned[1].split(".")]
        path = [current, *path] if current else path
        if key is not None and path[:2] == [section, key]:
            return number
        if path[0] == section:
            section_line = section_line or number
    return section_line or 1


def sample() -> str:
    """A fila.toml with every setting as a comment, at its default: what `config init` prints."""
    lines = ["# Every setting of fila-server, at its default. Remove the # of a line to change it."]
    for section, settings in _SETTINGS.items():
        lines += ["", f"[{section}]"]
        for key, setting in settings.items():
            words = f"{setting.meta.description} May be {setting.expected}."
            lines += ["", *textwrap.wrap(words, 110, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"# {key} = {as_toml(setting.default)}")
    return "\n".join(lines) + "\n"


def reference_tables() -> str:
    """Return the tables of docs/configuration.md, which a test holds to this."""
    lines = []
    for section, settings in _SETTINGS.items():
        struct = typing.get_type_hints(Config)[section]
        lines += [f"## `[{section}]`", "", str(struct.__doc__), ""]
        lines += ["| Key | Default | May be | What for |", "|---|---|---|---|"]
        lines += [
            f"| `{key}` | `{as_toml(setting.default)}` | {setting.expected} | {setting.meta.description} |"
            for key, setting in settings.items()
        ]
        lines.append("")
    return "\n".join(lines)
