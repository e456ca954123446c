"""`fleettui events`: text, JSON, filters, exit codes, --follow; moments of --since."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from cli_runner import SRC, Cli, write_machine

from fleettui.fleet.moments import past_moment
from fleettui.model.event import Event
from fleettui.store.database import Store
from fleettui.store.events import append_events, claim_writing

HOUR = 3600.0
HELD_S = 3.0
"""Longer than a reader waits for a file that is held."""


def make_events(now: float) -> list[Event]:
    return [
        Event(now - 30 * HOUR, "ada", "loaded", "note", "qwen3:8b loaded (5.2 GiB)", {"model": "qwen3:8b"},
              subject="1"),
        Event(now - 2 * HOUR, "ada", "health", "warn", "healthy → degraded: disk / is 97 % full",
              {"from": "healthy", "to": "degraded", "reason": "disk / is 97 % full"}, subject="2"),
        Event(now - 60, "gone", "trust", "good", "host key approved", {"how": "add"}, "mia@desk", "3"),
        Event(now - 50, "ada", "offline", "bad", "offline: refused", {"to": "offline"}, None, "4", 5,
              now - 9),
    ]  # fmt: skip


@pytest.fixture
def state_dir(tmp_path: Path, machines_dir: Path) -> Path:
    """Four recorded events of ada, which has a file, and of a machine that is gone."""
    write_machine(machines_dir, "ada")
    folder = tmp_path / "state"
    with Store.open(str(folder)) as store:
        append_events(store, str(machines_dir), make_events(time.time()))
    return folder


@pytest.fixture
def events(cli: Cli, state_dir: Path, machines_dir: Path) -> Cli:
    """The command on that state."""
    return Cli({"FLEETTUI_STATE_DIR": str(state_dir), "FLEETTUI_MACHINES": str(machines_dir), "TZ": "UTC"})


def test_the_last_day_newest_last(events: Cli) -> None:
    done = events("events")
    assert done.returncode == 0
    lines = [line.split("  ", 1)[1] for line in done.stdout.splitlines()]
    assert lines[:2] == [
        "ada   ● healthy → ◐ degraded: disk / is 97 % full",
        "gone  ⚿ host key approved by mia@desk",
    ]
    assert re.fullmatch(r"ada   ✗ offline: refused \(5 times, last \d\d:\d\d:\d\d\)", lines[2])
    assert "nobody records at the moment" in done.stderr
    assert "\x1b" not in done.stdout


def test_as_a_document(events: Cli, state_dir: Path, machines_dir: Path) -> None:
    with Store.open(str(state_dir)) as store:
        claim_writing(store, str(machines_dir), "x", "dashboard", time.time())
    document = json.loads(events("events", "--json", "--since", "2d").stdout)
    assert (document["schema"], document["recorded_by"], document["errors"]) == (1, "dashboard", [])
    assert [event["kind"] for event in document["events"]] == ["loaded", "health", "trust", "offline"]
    trust, offline = document["events"][2:]
    assert (trust["by"], trust["count"], trust["last_at"]) == ("mia@desk", 1, None)
    assert (offline["count"], offline["details"]) == (5, {"to": "offline"})
    assert offline["last_at"] > offline["at"]


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (["--since", "1h"], ["trust", "offline"]),
        (["--since", "30s"], ["offline"]),
        (["ada"], ["health", "offline"]),
        (["gone"], ["trust"]),
        (["gone", "ada", "--kind", "trust", "--kind", "health"], ["health", "trust"]),
        (["--kind", "moved"], []),
    ],
)
def test_narrowed(events: Cli, arguments: list[str], kinds: list[str]) -> None:
    done = events("events", "--json", *arguments)
    assert done.returncode == 0
    assert [event["kind"] for event in json.loads(done.stdout)["events"]] == kinds


def test_where_nothing_happened(events: Cli) -> None:
    done = events("events", "--kind", "moved")
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing of that kind happened in that time" in done.stderr


def test_where_nothing_was_ever_recorded(cli: Cli, tmp_path: Path, machines_dir: Path) -> None:
    where = {"FLEETTUI_STATE_DIR": str(tmp_path / "none"), "FLEETTUI_MACHINES": str(machines_dir)}
    done = cli("events", **where)
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing was recorded yet" in done.stderr
    assert "fleettui status --watch" in done.stderr
    assert json.loads(cli("events", "--json", **where).stdout)["events"] == []
    assert not (tmp_path / "none").exists(), "reading creates nothing"


def test_an_unknown_name(events: Cli) -> None:
    done = events("events", "adda")
    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean ada?" in done.stderr
    failed = json.loads(events("events", "adda", "--json").stdout)
    assert (failed["events"], failed["exit_code"]) == ([], 3)


@pytest.mark.parametrize(
    "arguments", [["--since", "soon"], ["--since", "2999-01-01"], ["--kind", "party"], ["--since"]]
)
def test_mistakes(events: Cli, arguments: list[str]) -> None:
    done = events("events", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "see: fleettui events --help" in done.stderr


def test_a_state_file_that_cannot_be_read(events: Cli, state_dir: Path) -> None:
    (state_dir / "state.db").write_bytes(b"no database at all, whatever its name says")
    done = events("events")
    assert (done.returncode, done.stdout) == (1, "")
    assert "state.db" in done.stderr
    assert "Traceback" not in done.stderr


def test_followed(events: Cli, state_dir: Path, machines_dir: Path) -> None:
    environment = {**os.environ, **events.environment, "PYTHONPATH": SRC}
    follow = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "events", "--follow", "--kind", "offline"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert follow.stdout is not None
    assert follow.stderr is not None
    try:
        assert "✗ offline: refused (5 times" in follow.stdout.readline()
        assert "nobody records at the moment" in follow.stderr.readline()
        now = time.time()
        with Store.open(str(state_dir)) as store:
            claim_writing(store, str(machines_dir), "x", "dashboard", now)
            more = [Event(now, "bora", kind, "bad", f"{kind}!", subject="5") for kind in ("back", "offline")]
            append_events(store, str(machines_dir), more)  # type: ignore[arg-type]
        assert follow.stdout.readline().endswith("bora  ? offline!\n")
        assert "recorded by dashboard, process" in follow.stderr.readline()
    finally:
        follow.terminate()
        follow.communicate(timeout=20)


def test_followed_before_anything_is_recorded_while_the_file_is_held(
    tmp_path: Path, machines_dir: Path
) -> None:
    """A recorder that makes its state file holds it for a moment; the follower waits."""
    write_machine(machines_dir, "ada")
    state = tmp_path / "new"
    Store.open(str(state)).close()
    command = [sys.executable, "-m", "fleettui", "events", "--follow", f"--state-dir={state}",
               f"--machines={machines_dir}"]  # fmt: skip
    follow = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": SRC},
    )  # fmt: skip
    assert follow.stdout is not None
    assert follow.stderr is not None
    try:
        assert "nobody records at the moment" in follow.stderr.readline()
        holder = sqlite3.connect(state / "state.db", isolation_level=None)
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("PRAGMA user_version")
        with pytest.raises(subprocess.TimeoutExpired):
            follow.wait(timeout=HELD_S)
        holder.close()
        with Store.open(str(state)) as store:
            append_events(store, str(machines_dir), make_events(time.time())[3:])
        assert "offline: refused" in follow.stdout.readline()
    finally:
        follow.kill()
        follow.communicate(timeout=20)


def drawn(events: Cli, columns: int, **variables: str) -> str:
    """What the command writes on a terminal of so many columns."""
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, **events.environment, "PYTHONPATH": SRC, "TERM": "xterm", **variables}
    subprocess.run(
        [sys.executable, "-m", "fleettui", "events"], stdin=child, stdout=child, stderr=subprocess.DEVNULL,
        timeout=60, env=environment, check=True,
    )  # fmt: skip
    os.close(child)
    text = ""
    while select.select([main], [], [], 0.2)[0]:
        try:
            text += os.read(main, 65536).decode()
        except OSError:  # the other end is closed
            break
    os.close(main)
    return text.replace("\r", "")


def test_in_a_terminal_lines_wrap_and_have_colours(events: Cli) -> None:
    assert "\x1b[33m● healthy → ◐ degraded:" in drawn(events, 54, NO_COLOR="")
    plain = drawn(events, 54, NO_COLOR="1")  # after midnight some lines have their date
    assert "● healthy → ◐ degraded:" in plain
    assert "\x1b" not in plain
    assert max(map(len, plain.split("\n"))) <= 54


NOW = time.mktime((2026, 11, 30, 14, 3, 12, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "ago_s"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5h", 5400), ("1d", 86_400), ("1w", 604_800),
     ("14:00", 192), ("14:03:12", 0), ("14:04", 86_400 - 48), ("0:00", 50_592),
     ("2026-11-30", 50_592), ("2026-11-30T14:03", 12), ("2026-11-30 14:03:02", 10)],
)  # fmt: skip
def test_moments(text: str, ago_s: float) -> None:
    assert past_moment(text, NOW) == NOW - ago_s


def test_a_moment_with_a_zone() -> None:
    assert past_moment("2001-09-09T01:46:40Z", NOW) == 1_000_000_000
    assert past_moment("2001-09-09T03:46:40+02:00", NOW) == 1_000_000_000


@pytest.mark.parametrize(
    "text", ["", "now", "25:00", "12:60", "-3h", "3 years", "2026-13-01", "٣h", "2030-01-01"]
)
def test_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="write 30m, 2h, 1d, 14:00"):
        past_moment(text, NOW)
