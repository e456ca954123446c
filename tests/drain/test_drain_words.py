"""What the commands about drains print, and their exit codes, on machines that are really drained."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest
from arena import LIMIT_S, SMALL, Arena, MakeArena, wait_until
from terminal import Terminal

from fleettui.model.drain import Drain
from fleettui.store.database import Store
from fleettui.store.drains import change_drain

pytestmark = pytest.mark.timeout(600)
BIG = "gpt-oss:120b"


def command(arena: Arena, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fleettui", *words], capture_output=True, text=True, timeout=LIMIT_S,
        env=arena.environment, cwd="/", check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def begin(arena: Arena, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fleettui", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=arena.environment, cwd="/", stdin=subprocess.DEVNULL,
    )  # fmt: skip


def wait_for_load(arena: Arena, started: subprocess.Popen[str]) -> None:
    """Until gpu-14 loads something."""

    def is_loading() -> bool:
        assert started.poll() is None, started.communicate()
        return bool(arena.fleet.command("state gpu-14")["loading"])

    wait_until(is_loading, "the load began")


def start_words(*options: str) -> Sequence[str]:
    return "drain", "start", "gpu-12", "--reason", "PSU swap", "--yes", "--idle-wait", "0.5", *options


def test_drained_in_words_and_as_a_document(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    done = command(arena, *start_words("--until", "2h"))
    assert (done.returncode, done.stdout) == (0, "gpu-12: drained\n"), done.stderr
    lines = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in done.stderr.splitlines()]
    assert lines[0].startswith('drain gpu-12 "PSU swap" 1 copy, 4.6 GiB to load, ')
    assert lines[0].endswith("targets gpu-14 (1)")
    steps = [line for line in lines if line.startswith(f"gpu-12  {SMALL}: ")]
    assert any(f"{SMALL}: loading on gpu-14" in line for line in steps)
    assert steps[-1].startswith(f"gpu-12  {SMALL}: gone")
    shown = command(arena, "drain", "status", "gpu-12").stdout
    assert shown.startswith('gpu-12: drained "PSU swap" by ')
    assert " safe to reboot; when it is back: fleettui undrain gpu-12\n" in shown
    assert re.search(rf'POST gpu-14:\d+/api/generate {{"model": "{SMALL}"', shown), "the exact call"
    back = command(arena, "undrain", "gpu-12", "--return", "--json")
    document = json.loads(back.stdout)
    (machine,) = document["machines"]
    assert (back.returncode, document["exit_code"], machine["drain"]["state"]) == (0, 0, "off")
    assert [copy["name"] for copy in machine["returned"]] == [SMALL]
    steps = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in back.stderr.splitlines()]
    assert any(line.startswith(f"gpu-12  {SMALL}: loading on gpu-12") for line in steps)
    served = [line for line in steps if f"{SMALL}: served now on gpu-12" in line]
    assert len(served) == 1, steps
    assert arena.loaded("gpu-12") == {SMALL}


def test_a_typed_name_starts_it(make_arena: MakeArena) -> None:
    arena = make_arena(12)
    with Terminal(
        "drain", "start", "gpu-12", "--reason", "kernel", environment=arena.environment
    ) as terminal:
        terminal.wait_for(lambda _: b"To start, type its name (gpu-12):" in terminal.written)
        assert b"takes no requests from now on; nothing is loaded there" in terminal.written
        terminal.press("gpu-12\n")
        assert terminal.end() == (0, b"gpu-12: drained\n")


def test_ctrl_c_leaves_it_to_whoever_follows(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", BIG)
    arena.install("gpu-14", BIG)
    started = begin(arena, *start_words())
    wait_for_load(arena, started)
    started.send_signal(signal.SIGINT)
    stdout, stderr = started.communicate(timeout=LIMIT_S)
    assert (started.returncode, stdout) == (130, "")
    assert "gpu-12: left as it stands; a load under way is given up, nothing is lost by that" in stderr
    assert "or: fleettui drain status gpu-12 --follow" in stderr
    assert arena.loaded("gpu-12") == {BIG}
    shown = command(arena, "drain", "status").stdout
    assert shown.startswith('gpu-12: draining (running) "PSU swap" by ')
    assert "nobody works on it now" in shown
    looked = begin(arena, "drain", "status", "--follow", "--readonly")
    followed = command(arena, "drain", "status", "gpu-12", "--follow", "--json")
    documents = [json.loads(line) for line in followed.stdout.splitlines()]
    assert followed.returncode == 0, followed.stderr
    assert documents[0]["machines"][0]["drain"]["state"] == "running"
    assert documents[-1]["machines"][0]["drain"]["state"] == "drained"
    stdout, _ = looked.communicate(timeout=LIMIT_S)
    assert looked.returncode == 0, "who only looks sees the end too"
    assert f"gpu-12  {BIG}: gone" in stdout
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == (set(), {BIG})


def test_what_blocked_it_is_gone_and_so_it_is_drained(make_arena: MakeArena) -> None:
    arena = make_arena(12)
    drain = Drain("d1", "gpu-12", "blocked", "PSU swap", "mia@jump", time.time(), text="vllm stays")
    with Store.open(arena.environment["FLEETTUI_STATE_DIR"]) as store:
        change_drain(store, arena.environment["FLEETTUI_MACHINES"], "gpu-12", lambda _: drain)
    words = ("drain", "status", "gpu-12", "--follow")
    with Terminal(*words, environment=arena.environment, stdout=None, size=(70, 12)) as terminal:
        code, _ = terminal.end()
        told = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", terminal.written.decode())
    assert code == 0, told
    last = told.rpartition("gpu-12: ")[2]
    assert last.startswith('drained "PSU swap" by mia@jump since ')
    assert "safe to reboot; when it is back: fleettui undrain gpu-12" in last
    assert arena.journal()[-1] == ("drained", "", "", "nothing is loaded any more; it was blocked")
    assert arena.state_of("gpu-12") == ("drained", ""), "who starts while it reboots knows, too"


def test_cancelled_says_what_stays_where(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", BIG)
    arena.install("gpu-14", BIG)
    started = begin(arena, *start_words("--json"))
    wait_for_load(arena, started)
    cancelled = command(arena, "drain", "cancel", "gpu-12", "--now")
    assert (cancelled.returncode, cancelled.stdout) == (
        0,
        f"gpu-12: cancelled; nothing was moved; still here: {BIG}; "
        "it takes no requests until: fleettui undrain gpu-12\n",
    )
    stdout, _ = started.communicate(timeout=LIMIT_S)
    document = json.loads(stdout)
    assert (started.returncode, document["exit_code"]) == (1, 1)
    assert document["machines"][0]["drain"]["state"] == "cancelled"
    assert command(arena, "drain", "status", "gpu-12", "--follow").returncode == 1
