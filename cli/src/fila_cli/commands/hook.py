"""`fila hook`: a queue's scripts. Try one before it routes anything, see why one fails, change or switch one off."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import complete_queue, queue_argument, yes_option
from fila_cli.colors import Meaning, Meant
from fila_cli.failures import BrokerError
from fila_cli.inspection import ignored_fields
from fila_cli.output import Cell, counted, facts, show
from fila_cli.session import Group, Session, confirm
from fila_cli.values import PAIR, SOURCE, Count, rough_size_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import HookStats

_TRIAL_S_MAX = 120.0
_hook_argument = click.argument("hook", type=click.Choice(["on-enqueue", "on-failure"]))


@click.group(
    cls=Group,
    examples="""
    fila hook test route.lua --header tenant=acme
    fila hook show orders
    fila hook set orders on-enqueue @route.lua
    """,
)
def hook() -> None:
    """Scripts of a queue: try, show, set, disable."""


@hook.command(
    examples="""
    fila hook test route.lua --header tenant=acme
    fila hook test retry.lua --attempts 3 --error 'card declined'
    fila hook test route.lua --header tenant=acme --runs 1000
    fila hook test --queue orders --header tenant=acme
    """
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--queue",
    default="",
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Try this queue's script, with the broker's runtime config",
)
@click.option(
    "-H", "--header", "headers", type=PAIR, multiple=True, help="A header of the message; repeat for more"
)
@click.option(
    "--payload", type=SOURCE, default="", metavar="TEXT|@FILE", help="Its payload; scripts see the size"
)
@click.option(
    "--hook",
    "which",
    type=click.Choice(["on-enqueue", "on-failure"]),
    help="Which [default: the one it defines]",
)
@click.option(
    "--attempts", type=Count(1), default=1, show_default=True, help="For on-failure: failures so far"
)
@click.option("--error", default="error", metavar="TEXT", help="For on-failure: what went wrong")
@click.option(
    "--key", "fairness_key", default="default", metavar="KEY", help="For on-failure: its fairness key"
)
@click.option("--runs", type=Count(1, 100_000), default=1, show_default=True, help="How often to run it")
@click.pass_obj
def test(session: Session, /, file: Path | None, queue: str, headers: Any, payload: str, **about: Any) -> int:
    """Run a script in the broker's sandbox on a message that you describe; nothing is stored.

    Exit code 1 when it fails, and when it returns a field that nobody reads.
    """
    if (file is None) == (not queue):
        raise click.UsageError("give a FILE, or --queue for the script of a queue")
    which = (about.pop("which") or "").replace("-", "_")
    trial = {"headers": dict(headers), "payload_size": len(payload.encode()), "hook": which, **about}
    if file is not None:
        try:
            trial["script"] = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise click.BadParameter(f"cannot read {file}: {why}", param_hint="'FILE'") from error
    else:
        trial |= _of_queue(session, queue, which)
    outcome = _tried(trial)
    show(session.format, outcome, facts(_facts(outcome)))
    return 1 if outcome["problem"] or outcome["ignored"] else 0


def _of_queue(session: Session, queue: str, which: str) -> dict[str, Any]:
    from fila.v1 import admin_pb2

    config = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s).config
    entries = session.admin.ListConfig(admin_pb2.ListConfigRequest(), timeout=session.timeout_s).entries
    if not config.on_enqueue_script and not config.on_failure_script:
        raise BrokerError(f"queue {queue} has no scripts; 'fila hook set {queue}' gives it one")
    chosen = which or ("on_enqueue" if config.on_enqueue_script else "on_failure")
    script = getattr(config, f"{chosen}_script")
    if not script:
        raise BrokerError(f"queue {queue} has no {chosen} script; 'fila hook show {queue}' shows what it has")
    values = {entry.key: entry.value for entry in entries}
    return {"script": script, "hook": chosen, "queue": queue, "config": values}


def _tried(trial: dict[str, Any]) -> dict[str, Any]:
    beside = Path(sys.executable).with_name("fila-server")
    server = str(beside) if beside.exists() else shutil.which("fila-server")
    if server is None:
        raise BrokerError("hook test needs fila-server on this machine, whose sandbox it runs the script in")
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [server, "hook-test"],
            check=False,
            input=json.dumps(trial),
            capture_output=True,
            text=True,
            timeout=_TRIAL_S_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise BrokerError(f"the trial took over {_TRIAL_S_MAX:.0f} s; try fewer --runs") from error
    if done.returncode:
        raise BrokerError(done.stderr.strip().removeprefix("fila-server: ") or "fila-server hook-test failed")
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def _facts(outcome: dict[str, Any]) -> list[tuple[str, Cell]]:
    listed: list[tuple[str, Cell]] = [("hook", outcome["hook"])]
    if outcome["problem"]:
        listed.append(("fails", Meant(outcome["problem"], Meaning.TROUBLE)))
    else:
        shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in outcome["result"].items())
        listed.append(("returns", shown or "nothing: the queue's policy decides"))
    if outcome["ignored"]:
        listed.append(("ignored", Meant(", ".join(outcome["ignored"]), Meaning.TROUBLE)))
    if outcome["runs"]:
        times = f"{outcome['median_us']:,.1f} us"
        if outcome["runs"] > 1:
            times += f" median of {outcome['runs']:,} runs, slowest {outcome['slowest_us']:,.1f} us"
        listed.append(("time", f"{times}; cut off after {outcome['time_limit_ms']} ms"))
    if outcome["instructions"]:
        listed.append(("instructions", f"{outcome['instructions']:,} a run"))
    if outcome["allocated_bytes"]:
        made, kept = rough_size_text(outcome["allocated_bytes"]), rough_size_text(outcome["kept_bytes"])
        most = rough_size_text(outcome["memory_limit_bytes"])
        listed.append(("memory", f"{made} a run, {kept} kept between runs; at most {most}"))
    listed += [("log", line) for line in outcome["log"]]
    return listed


@hook.command(
    name="show",
    examples="""
    fila hook show orders
    fila hook show orders -o json
    """,
)
@queue_argument
@click.pass_obj
def show_(session: Session, queue: str) -> None:
    """Print the scripts of QUEUE, and how they are doing: runs, errors, the last one and its message's headers."""
    from fila.v1 import admin_pb2

    config = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s).config
    request = admin_pb2.GetStatsRequest(queue=queue, max_keys=1)
    stats = session.admin.GetStats(request, timeout=session.timeout_s)
    parts = []
    for each in stats.hooks:
        parts.append(facts(health(each)))
        parts.append(getattr(config, f"{each.hook}_script").rstrip("\n"))
    value = {
        "on_enqueue_script": config.on_enqueue_script,
        "on_failure_script": config.on_failure_script,
        "hooks": [_plain(each) for each in stats.hooks],
    }
    show(session.format, value, "\n\n".join(parts) or f"queue {queue} has no scripts")


def _plain(each: HookStats) -> dict[str, Any]:
    from fila_cli.output import to_dict

    return to_dict(each)


def health(each: HookStats) -> list[tuple[str, Cell]]:
    """How one script is doing."""
    from fila.v1 import admin_pb2

    circuit = admin_pb2.BreakerState.Name(each.breaker_state).removeprefix("BREAKER_STATE_").lower()
    listed: list[tuple[str, Cell]] = [
        ("hook", each.hook),
        ("circuit", circuit if circuit == "closed" else Meant(circuit.replace("_", " "), Meaning.TROUBLE)),
        ("runs", each.runs),
        ("errors", Meant(str(each.errors), Meaning.TROUBLE) if each.errors else 0),
        ("fallbacks", each.fallbacks),
    ]
    if each.ignored_fields:
        listed.append(("returns in vain", Meant(ignored_fields(each), Meaning.TROUBLE)))
    if each.log_lines or each.log_lines_dropped:
        lost = f", {each.log_lines_dropped} dropped" if each.log_lines_dropped else ""
        listed.append(("logged", f"{counted(each.log_lines, 'line')}{lost}"))
    if each.last_error:
        headers = " ".join(
            f"{name}={each.last_error_headers[name]}" for name in sorted(each.last_error_headers)
        )
        listed.append(("last error", Meant(each.last_error, Meaning.TROUBLE)))
        listed.append(("at", f"{each.last_error_at.ToJsonString()}, headers {headers or 'none'}"))
    return listed


@hook.command(name="set", examples="fila hook set orders on-enqueue @route.lua")
@queue_argument
@_hook_argument
@click.argument("script", type=SOURCE, metavar="LUA|@FILE")
@click.pass_obj
def set_(session: Session, queue: str, hook: str, script: str) -> None:
    """Give QUEUE a script; it applies to what is enqueued, or fails, from now on."""
    _update(session, queue, hook, script)
    show(session.format, {"queue": queue, "hook": hook}, f"{hook} of {queue} set")


@hook.command(examples="fila hook disable orders on-enqueue --yes")
@queue_argument
@_hook_argument
@yes_option
@click.pass_obj
def disable(session: Session, queue: str, hook: str, *, yes: bool) -> None:
    """Take a script away; the queue's policy decides from now on. 'fila hook show' prints it before."""
    from fila.v1 import admin_pb2

    config = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s).config
    if not getattr(config, f"{hook.replace('-', '_')}_script"):
        show(session.format, {"queue": queue, "hook": hook}, f"{queue} has no {hook} script")
        return
    confirm(f"Take {hook} of {queue} away?", yes=yes)
    _update(session, queue, hook, "")
    show(session.format, {"queue": queue, "hook": hook}, f"{hook} of {queue} disabled")


def _update(session: Session, queue: str, hook: str, script: str) -> None:
    from fila.v1 import admin_pb2

    field = f"{hook.replace('-', '_')}_script"
    request = admin_pb2.UpdateQueueRequest(queue=queue)
    setattr(request.config, field, script)
    request.update_mask.paths.append(field)
    session.admin.UpdateQueue(request, timeout=session.timeout_s)
