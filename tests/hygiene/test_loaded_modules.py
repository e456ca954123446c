"""What each room and each command really loads, seen in processes of their own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot, SourceStatus
from fleettui.store.database import Store
from fleettui.store.snapshots import save_snapshot

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "fleettui"

HEAVY = {"asyncio", "asyncssh", "cryptography", "httpx", "httpcore", "pydantic", "yaml", "textual", "rich"}
# What importing a room may never bring along, itself or through what it imports.
NEVER_LOADED = {
    "model": HEAVY | {"sqlite3", "random", "subprocess", "socket", "logging", "platformdirs"},
    "probes": HEAVY | {"sqlite3", "random", "subprocess", "socket", "logging", "platformdirs"},
    "decide": HEAVY | {"sqlite3", "random", "subprocess", "socket", "logging", "platformdirs"},
    "view": HEAVY | {"sqlite3", "random", "subprocess", "socket", "logging", "platformdirs"},
    "store": HEAVY,
    "config": {"asyncio", "asyncssh", "cryptography", "httpx", "httpcore", "sqlite3", "textual", "rich"},
    "net": {"sqlite3", "pydantic", "yaml", "textual", "rich"},
    "fleet": {"textual", "rich"},
    "demo": {"textual", "rich"},
    "serve": {"textual", "rich"},
    "cli": {"textual"},
}
WEB_SERVER = {"starlette", "uvicorn", "prometheus_client", "mcp"}
# A script pays for each of these at every call.
WARM_ROUTE_NEVER = HEAVY | {
    *("platformdirs", "random", "socket", "ssl", "subprocess", "logging", "tempfile"),
    *(
        "argcomplete",
        "argparse",
        "dataclasses",
        "enum",
        "gettext",
        "inspect",
        "json",
        "pathlib",
        "re",
        "shutil",
        "typing",
    ),
}

IMPORT_WHOLE_ROOM = """
import importlib, pkgutil, sys
before = set(sys.modules)
room = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("\\n".join(set(sys.modules) - before))
"""
IMPORTTIME_LINE = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")


def environment() -> dict[str, str]:
    """The test's environment, isolated already, in which this checkout is what `fleettui` means."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}


def top_levels(modules: set[str]) -> set[str]:
    """Top-level packages of module names."""
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("room", NEVER_LOADED)
def test_room_loads_only_what_it_may(room: str, home: Path) -> None:
    command = [sys.executable, "-c", IMPORT_WHOLE_ROOM, f"fleettui.{room}"]
    done = subprocess.run(
        command, env=environment(), cwd=home, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = top_levels(set(done.stdout.split()))
    assert "fleettui" in loaded
    never = NEVER_LOADED[room] if room == "serve" else NEVER_LOADED[room] | WEB_SERVER
    assert sorted(loaded & never) == []


def loaded_by_command(
    arguments: list[str], home: Path, exit_code: int = 0, *, machines: bool = True
) -> tuple[set[str], subprocess.CompletedProcess[str]]:
    """Modules that `python -m fleettui ARGUMENTS` imports. The interpreter itself reports them."""
    folders = ["--state-dir", str(home / "state")]
    if machines:
        folders += ["--machines", str(home / "machines")]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fleettui", *arguments, *folders],
        env=environment(),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = "\n".join(line for line in done.stderr.splitlines() if not IMPORTTIME_LINE.match(line))
    assert done.returncode == exit_code, said
    modules = set(IMPORTTIME_LINE.findall(done.stderr))
    assert "fleettui.cli.main" in modules
    return modules, done


UNREACHABLE = """\
name: gone
role: gpu-host
hardware: {gpu: []}
network: {hostname: 127.0.0.1, port: 9}
models: []
ssh: {host: 127.0.0.1, port: 9, user: nobody}
"""


@pytest.mark.parametrize(
    ("command_line", "exit_code"),
    [
        ("--version", 0),
        ("--help", 0),
        ("machines list", 0),
        ("machines check", 0),
        ("status --json --deadline 3", 4),
        ("--route llama3.1:8b --deadline 3", 4),
        ("", 4),
    ],
)
def test_nothing_headless_loads_textual(command_line: str, exit_code: int, home: Path) -> None:
    (home / "machines").mkdir()
    (home / "machines" / "gone.yaml").write_text(UNREACHABLE, encoding="utf-8")
    modules, _ = loaded_by_command(command_line.split(), home, exit_code)
    assert sorted(top_levels(modules) & {"textual", "rich", *WEB_SERVER}) == []


def test_the_server_loads_mcp_only_where_it_is_asked_for(home: Path) -> None:
    code = "import sys, fleettui.serve.app, fleettui.cli.mcp; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), cwd=home, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout == "False\n", done.stderr


def test_version_loads_next_to_nothing(home: Path) -> None:
    modules, done = loaded_by_command(["--version"], home)
    assert re.fullmatch(r"fleettui \d+\.\d+\S*\n", done.stdout)
    assert sorted(top_levels(modules) & (HEAVY | {"sqlite3"})) == []


def store_fleet(home: Path, written_at: float) -> None:
    """One machine with one resident model, as a running dashboard stores it."""
    engine = EngineReading(
        kind="ollama",
        port=11434,
        state="ok",
        version="0.33.0",
        loaded=(LoadedModel("llama3.1:8b", "ollama", size_bytes=7 << 30, vram_bytes=7 << 30),),
        installed=(InstalledModel("llama3.1:8b", "ollama", size_bytes=5 << 30),),
    )
    machine = MachineSnapshot(
        Machine("ada", "gpu-host", "ada.lan", engines=(EngineEndpoint("ollama", 11434),)),
        link=LinkStatus("up", since=written_at - 60),
        engines=(engine,),
        sources={"ollama": SourceStatus("ok", written_at, written_at - 60)},
        health="healthy",
        last_seen=written_at,
        seq=1,
    )
    machines = home / "machines"
    machines.mkdir(exist_ok=True)
    fleet = FleetSnapshot(1, written_at, 2.0, (machine,), (), str(machines))
    store = Store.open(str(home / "state"))
    save_snapshot(store, fleet, {"ada"}, written_at=written_at)
    store.close()


@pytest.mark.parametrize("options", [[], ["--no-lease"]])
def test_route_from_a_fresh_snapshot_loads_no_library(options: list[str], home: Path) -> None:
    store_fleet(home, time.time())
    arguments = ["--route", "llama3.1:8b", "--max-age", "60", *options]
    modules, done = loaded_by_command(arguments, home)
    assert done.stdout == "ada.lan:11434\n"
    assert sorted(top_levels(modules) & WARM_ROUTE_NEVER) == []


def test_route_through_a_server_needs_a_socket_and_no_library(home: Path) -> None:
    body = b'{"schema":1,"exit_code":0,"stdout":"ada.lan:11434\\n","reasons":["route llama3.1:8b"]}\n'
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            modules, done = loaded_by_command(
                ["--route", "llama3.1:8b", "--server", url], home, machines=False
            )
        finally:
            with suppress(OSError):  # where nobody came
                socket.create_connection(listener.getsockname()).close()
            thread.join()
    assert done.stdout == "ada.lan:11434\n"
    assert sorted(top_levels(modules) & (WARM_ROUTE_NEVER | {"sqlite3"})) == []


def test_route_from_an_old_snapshot_does_not_answer_from_it(home: Path) -> None:
    store_fleet(home, time.time() - 3600)
    (home / "machines" / "gone.yaml").write_text(UNREACHABLE, encoding="utf-8")
    modules, done = loaded_by_command(["--route", "llama3.1:8b", "--deadline", "3"], home, 4)
    assert done.stdout == ""
    assert "asyncssh" in modules
