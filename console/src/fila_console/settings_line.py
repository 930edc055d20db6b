"""The line for a shell that changes a queue's settings as a form does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fila.shell_words import command_line

_FLAGS = {
    "fairness_key_header": "--fairness-header",
    "weight_header": "--weight-header",
    "cost_header": "--cost-header",
    "priority_header": "--priority-header",
    "key_limit": "--key-limit",
    "retry": "--retry",
    "max_attempts": "--max-attempts",
    "max_depth": "--max-depth",
    "max_bytes": "--max-bytes",
    "key_order": "--key-order",
    "durability": "--durability",
    "hook_fallback": "--hook-fallback",
    "key_rate": "--key-rate",
    "key_burst": "--key-burst",
    "key_cap": "--key-cap",
    "key_committed": "--key-committed",
    "retention_soft_bytes": "--soft-retention-size",
    "retention_hard_bytes": "--hard-retention-size",
}
_TIMES = {
    "visibility_timeout_ms": "--visibility-timeout",
    "dedup_window_ms": "--dedup-window",
    "disconnect_grace_ms": "--disconnect-grace",
    "retention_soft_period_ms": "--soft-retention",
    "retention_hard_period_ms": "--hard-retention",
}
_SCRIPTS = {"on_enqueue_script": "--on-enqueue", "on_failure_script": "--on-failure"}


def settings_line(queue: str, names: Sequence[str], values: Mapping[str, str]) -> str:
    """What sets these fields of the form of policy; a script comes from a file, which the line only names."""
    options: list[str] = []
    for name in names:
        value = values[name].strip()
        if name in _FLAGS:
            options += [_FLAGS[name], value.replace(",", "") if value[:1].isdigit() else value]
        elif name in _TIMES:
            options += [_TIMES[name], f"{value}ms"]
        elif name in _SCRIPTS:
            options += [_SCRIPTS[name], f"{name.removesuffix('_script')}.lua"]
        elif name == "ttl_to_dlq":
            options.append("--ttl-to-dlq" if value == "yes" else "--no-ttl-to-dlq")
        elif name == "allow_producer_routing":
            options.append("--producer-routing" if value == "yes" else "--no-producer-routing")
        elif name == "throttle_key_headers":
            for header in filter(None, map(str.strip, value.split(","))):
                options += ["--throttle-header", header]
        elif name == "weights":
            for line in filter(str.strip, value.split("\n")):
                options += ["--weight", line]
    return command_line("fila queue update", queue, options=options)
