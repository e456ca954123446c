"""Writes docs/remote-commands.md and docs/restricted-key.sh from the probes, and texts from scripts/pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fleettui.decide.discovery import MOST_PORTS
from fleettui.fleet.amd_record import TOOL_PERIOD_S
from fleettui.fleet.discovery import AGAIN_S, MOST_PATHS
from fleettui.fleet.needs import (
    CONDITION_PERIOD_S,
    DISKS_PERIOD_S,
    MEMORY_PERIOD_S,
    MINUTE_PERIOD_S,
    PROCESSES_PERIOD_S,
    SETTINGS_PERIOD_S,
    SOCKETS_PERIOD_S,
)
from fleettui.probes.commands import COMMANDS, LOOP_KINDS, STARTING, RemoteCommand, When, loop_digest
from fleettui.probes.engines import PROBES
from fleettui.probes.engines.probe import EACH_POLL, OFTEN_S, RARELY_S
from fleettui.probes.loops import LoopKind
from fleettui.probes.socket_peers import PEERS_COMMAND
from fleettui.probes.windows import NVIDIA_SMI_PLACES, TASK_LIST, nvidia_smi_command

TEMPLATES = Path(__file__).with_name("pages")
DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "remote-commands.md"
WRAPPER = DOCS / "restricted-key.sh"

PERIODS: dict[When, float] = {
    "memory": MEMORY_PERIOD_S,
    "disks": DISKS_PERIOD_S,
    "processes": PROCESSES_PERIOD_S,
    "minute": MINUTE_PERIOD_S,
    "sockets": SOCKETS_PERIOD_S,
    "settings": SETTINGS_PERIOD_S,
    "condition": CONDITION_PERIOD_S,
    "amd tool": TOOL_PERIOD_S,
}
OCCASIONS: dict[When, str] = {
    "tick": "each interval (2 s, or yours)",
    "connection": "once a connection",
    "driver": "once a driver",
    "asked": "when you press `r` and there was none, and in `machines doctor`",
    "doctor": "only in `machines doctor`",
    "logs": "only in `fleettui logs MACHINE`",
    "inventory": "only in `fleettui inventory collect`",
    "engine": "only where SSH forwarding is refused and a direct connection fails",
}
LOOP_TITLES: dict[LoopKind, str] = {
    "facts": "`fleettui-facts`: the machine itself",
    "gpu": "`fleettui-gpu`: cards, and what runs on them",
    "engine": "`fleettui-engine`: engines, where nothing else reaches them",
    "doctor": "`fleettui-doctor`: `fleettui machines doctor`",
    "logs": "`fleettui-logs`: `fleettui logs MACHINE`",
}

KEY_LINE = (
    'restrict,port-forwarding,permitopen="127.0.0.1:11434",permitopen="[::1]:11434",'
    'permitlisten="localhost:1",command="/usr/local/bin/fleettui-only" ssh-ed25519 AAAA… fleettui'
)
"""permitlisten has no word for none: port 1 is one that only root may listen on."""


def fill(template: str, **parts: str) -> str:
    """A text of scripts/pages with its `@name@` replaced."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def wrapper_text() -> str:
    """The forced command, with the digests of this version."""
    lines = [f'{loop_digest(kind)}) exec /bin/sh -c "$asked" ;; # {kind}' for kind in LOOP_KINDS]
    return fill(WRAPPER.name, digests="\n".join(lines))


def when_text(when: When) -> str:
    """How often, as a reader says it."""
    if when in OCCASIONS:
        return OCCASIONS[when]
    seconds = PERIODS[when]
    return "once a minute" if seconds == 60 else f"every {seconds:g} s"


def row(command: RemoteCommand) -> str:
    """One line of a loop's table."""
    runs = "<br>".join(f"`{program}`" for program in command.runs)
    if command.runs and command.limit_s:
        runs += f"<br>at most {command.limit_s} s" + (" each" if len(command.runs) > 1 else "")
    cells = (command.section or "(start)", when_text(command.when), runs or "–",
             "<br>".join(command.reads) or "–", command.note)  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def loop_tables() -> Iterator[str]:
    """A heading and a table for each loop."""
    for kind in LOOP_KINDS:
        yield f"## {LOOP_TITLES[kind]}\n"
        yield "| section | how often | starts | reads | |"
        yield "| --- | --- | --- | --- | --- |"
        yield from (row(command) for command in (*STARTING, *COMMANDS) if command.loop == kind)
        yield ""


def windows_lines() -> Iterator[str]:
    """Machines with OpenSSH for Windows."""
    yield "## Windows\n"
    yield "A machine with OpenSSH for Windows gets no shell of ours, only these commands, each interval or"
    yield "as rarely as their sections above. While one has not ended there is no second one.\n"
    yield "| section | command |\n| --- | --- |"
    for section in ("gpu", "apps", "condition", "list", "version"):
        fields = next((c.runs[0] for c in COMMANDS if c.section == section), "")
        asked = section
        if section == "condition":
            asked += ":" + fields.partition("=")[2].partition(" ")[0].replace(",", ":")
        yield f"| {section} | `{nvidia_smi_command(NVIDIA_SMI_PLACES[0], asked)}` |"
    yield f"| whether one still runs | `{TASK_LIST}` |"
    places = ", ".join(f"`{place}`" for place in NVIDIA_SMI_PLACES[1:])
    yield f"\nWhere `{NVIDIA_SMI_PLACES[0]}` is not found: {places}.\n"


def engine_lines() -> Iterator[str]:
    """What is asked of engines."""
    yield "## Requests to engines\n"
    yield "Only `GET`, to 127.0.0.1 of the machine and the port of its file, through the SSH connection; and"
    yield "of Ollama once for each model's weights, in the whole fleet and all runs, `POST /api/show`, which"
    yield "only tells what they are made of. It is asked while a dashboard or `status --watch` runs, one at a"
    yield "time, and by `fleettui fit MODEL`."
    yield "Nothing else is asked of an engine while it is watched. A path that an engine says it has not is"
    yield "not asked again before it starts anew; of an engine that is down only the paths in bold are asked."
    yield "With `--avoid-busy` llama.cpp is also asked `/slots`, only awake and without metrics, and a router"
    yield "`/metrics?autoload=false&model=NAME` of what it has loaded.\n"
    yield "Engines that no file names are looked for while a dashboard or `status --watch` runs: on ports"
    yield "from 1024 up that are listened on, and that stand in the command line of a server of models or are"
    yield "usual for one; where such a server runs and its port is not known, on others too, but for those of"
    yield f"databases, queues, printers and the like. At most {MOST_PORTS} ports a machine and {MOST_PATHS}"
    yield f"`GET`s each, not again within {AGAIN_S / 60:g} minutes:"
    paths = dict.fromkeys(path for probe in PROBES.values() for path in probe.sign_paths)
    yield f"{', '.join(f'`{path}`' for path in paths)}. A key with `permitopen` forbids it.\n"
    periods = (EACH_POLL, OFTEN_S, RARELY_S)
    yield f"| engine | each interval | every {OFTEN_S:g} s | every {RARELY_S:g} s |"
    yield "| --- | --- | --- | --- |"
    for probe in PROBES.values():
        cells = []
        for period_s in periods:
            asked = (question for question in probe.questions if question.every_s == period_s)
            cells.append(", ".join(f"**`{q.path}`**" if q.is_vital else f"`{q.path}`" for q in asked))
        yield f"| {probe.label} | {' | '.join(cells)} |"
    yield ""


def drain_lines() -> Iterator[str]:
    """What a drain does besides."""
    yield "## What a drain calls\n"
    yield "Only a drain that you started, and what goes on with it. Each call stands in its journal as it was"
    yield "made, before it was made.\n"
    yield "| engine | load | unload |"
    yield "| --- | --- | --- |"
    for engine, load, unload in DRAIN_CALLS:
        yield f"| {engine} | {load} | {unload} |"
    yield "\nBefore a copy is unloaded, whoever serves it instead is asked what it holds, and an Ollama"
    yield "there to keep it as long as it would have stayed (the request of a load, with its context where"
    yield "that is not the default). `start:` and `stop:` are run over the SSH connection, as written, by"
    yield "the login shell, and by nothing else. A key with the forced command below runs neither; the drain"
    yield "then names the engine that it cannot stop.\n"
    yield f"Where a client loads a drained model again, `{PEERS_COMMAND}` tells who is connected"
    yield "to that port.\n"


DRAIN_CALLS = (
    (
        "Ollama",
        "`POST /api/generate` without a prompt, `POST /api/embed` without input where a model only embeds; "
        "`POST /api/pull` with `--allow-pull`; one token with `--probe`",
        "`POST /api/generate` with `keep_alive` 0",
    ),
    (
        "llama.cpp router",
        "`POST /models/load`",
        "`POST /models/unload`, after `GET /metrics?autoload=false&model=NAME` counted no request",
    ),
    (
        "llama-swap",
        "`GET /upstream/NAME/health`",
        "`POST /api/models/unload/NAME`, where nobody is connected",
    ),
    (
        "vLLM",
        "`start:` of the machine file; `POST /wake_up`",
        "after `GET /metrics` counted no request: `stop:` of the machine file, else `POST /sleep?level=1` "
        "where it says that it can sleep",
    ),
    ("others", "`start:` of the machine file", "`stop:` of the machine file"),
)


def page_text() -> str:
    """The page."""
    digests = "\n".join(f"| `fleettui-{kind}` | `{loop_digest(kind)}` |" for kind in LOOP_KINDS)
    tables = "\n".join((*loop_tables(), *windows_lines(), *engine_lines(), *drain_lines()))
    return fill(PAGE.name, tables=tables, key_line=KEY_LINE, wrapper=wrapper_text(), digests=digests)


def main() -> None:
    """Write both."""
    PAGE.write_text(page_text(), encoding="utf-8")
    WRAPPER.write_text(wrapper_text(), encoding="utf-8")
    WRAPPER.chmod(0o755)


if __name__ == "__main__":
    main()
