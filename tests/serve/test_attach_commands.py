"""Commands that ask a running server print what they print when they ask the machines."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from served import SRC, Served

from fleettui.cli.main import main
from fleettui.demo.launcher import DemoFleet
from fleettui.serve.tokens import make_token_file

Done = subprocess.CompletedProcess[str]
CATALOG = str(Path(__file__).resolve().parents[2] / "catalog")
PATIENCE_S = 60.0
ATTEMPTS = 6
"""The fleet works: between two questions a copy may be used, or be idle by now."""


def run(fleet: DemoFleet, *arguments: str, **variables: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "fleettui", *arguments],
        env={**os.environ, **fleet.environment, **variables, "PYTHONPATH": SRC},
        cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def url_of(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}"


def still(text: str) -> str:
    """Without what moves by itself: ages, times, what polling took."""
    text = re.sub(r'"age_s": {[^}]*}', '"age_s": X', text)
    text = re.sub(r'"(age_s|idle_s|took_ms|taken_at|generated_at|at)": [^\n,]+', r'"\1": X', text)
    return re.sub(r"\b\d+[smh]\b|\b\d+ (s|min)\b", "N", text)


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [
        ("machines list", 0),
        ("status spark ada", 0),
        ("placement plan --json --optimal --without bora", 0),
        ("events --json", 0),
        ("route llama3.1:8b --no-lease --top 2 --format tsv", 0),
        ("route nosuch:1b --no-lease --json", 3),
    ],
)
def test_the_same_bytes(fleet: DemoFleet, served: Served, line: str, exit_code: int) -> None:
    words = line.split()
    for _ in range(ATTEMPTS):
        here = run(fleet, *words, "--standalone", FLEETTUI_CATALOG=CATALOG)
        there = run(fleet, *words, FLEETTUI_SERVER=url_of(served))
        if still(here.stdout) == still(there.stdout):
            break
    assert (here.returncode, there.returncode) == (exit_code, exit_code), there.stderr
    assert still(there.stdout) == still(here.stdout)
    has_mark = f"via server {url_of(served)}" in there.stderr
    assert has_mark == ("--json" not in words or "route" in words)
    assert "via server" not in here.stderr


def test_a_server_of_the_settings(fleet: DemoFleet, served: Served, home: Path, tmp_path: Path) -> None:
    """No file of a machine is here; what the command line says of machine files beats the server."""
    folder = home / ".config" / "fleettui"
    folder.mkdir(parents=True)
    (folder / "settings.yaml").write_text(f"server: {url_of(served)}\n")
    nothing = {"FLEETTUI_MACHINES": str(tmp_path / "none"), "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
    found = run(fleet, "--route", "llama3.1:70b", **nothing)
    assert (found.returncode, found.stdout.count("\n")) == (0, 1)
    assert found.stderr.splitlines()[0] == f"via server {url_of(served)}"
    assert "note: no lease was taken" in found.stderr
    assert not (tmp_path / "state").exists()
    standalone = run(fleet, "--route", "llama3.1:70b", "--standalone", **nothing)
    assert (standalone.returncode, standalone.stdout) == (2, "")
    assert f"no machines: {tmp_path}/none" in standalone.stderr
    own_files = run(fleet, "machines", "list", "--machines", str(tmp_path), **nothing)
    assert "via server" not in own_files.stderr


def test_leases_of_a_server(fleet: DemoFleet, tmp_path: Path) -> None:
    """One is taken there by whoever has its token; all others are told why not."""
    token = tmp_path / "ops.token"
    make_token_file(str(token))
    own = {**fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "server")}
    ours = {"FLEETTUI_STATE_DIR": str(tmp_path / "state")}
    with Served(tmp_path / "log", own, "--allow-actions", "--token-file", str(token)) as served:
        route = "route", "llama3.1:8b", "--server", url_of(served)
        without = run(fleet, *route, **ours)
        assert without.returncode == 0
        assert "no lease was taken: a server gives one only to whoever has a token" in without.stderr
        refused = run(fleet, *route, "--hold", "5m", **ours)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "changes are refused" in refused.stderr

        ours["FLEETTUI_SERVER_TOKEN_FILE"] = str(token)
        found = run(fleet, *route, "--hold", "5m", "--format", "json", **ours)
        lease = json.loads(found.stdout)["chosen"]["lease"]["id"]
        assert f"lease {lease} on " in found.stderr
        readonly = run(fleet, *route, "--readonly", **ours)
        assert "note: no lease was taken: this fleettui is --readonly" in readonly.stderr
        release = "route", "--release", lease, "--server", url_of(served)
        assert run(fleet, *release, **ours).returncode == 0
        again = run(fleet, *release, **ours)
        assert (again.returncode, again.stdout) == (1, "")
        assert f"no lease {lease!r} holds" in again.stderr
    assert not (tmp_path / "state").exists()
    assert token.read_text().strip() not in served.log.read_text() + found.stderr + again.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("status --server http://127.0.0.1:9 --standalone", "leave out one of them"),
        ("status --server http://127.0.0.1:9 --machines /m", "--server answers for its own"),
        ("serve --server http://127.0.0.1:9", "serve does not go through a server"),
        ("machines check --server http://127.0.0.1:9", "machines check does not go through a server"),
        ("status --server 127.0.0.1:9", "must be a URL such as http://127.0.0.1:3038"),
        ("route m --server http://127.0.0.1:9 --warm", "--warm does not go through the server"),
        ("route m --server http://127.0.0.1:9 --check-reachable", "addresses are tried from here"),
        ("route m --server http://127.0.0.1:9 --max-age 0", "it polls now"),
    ],
)
def test_what_does_not_go_together(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(line) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err


@pytest.mark.parametrize("line", ["status", "status --watch", "--route m", "events", "machines list"])
def test_nobody_there(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(f"{line} --server http://127.0.0.1:9") == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the server http://127.0.0.1:9 cannot be reached: Connection refused" in shown.err
    assert "--standalone" in shown.err


def test_a_name_that_no_machine_has(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("status adda", "events adda"):
        assert call(f"{line} --server {url_of(served)}") == 3
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "no machine is named 'adda' in " in shown.err
        assert "did you mean ada?" in shown.err


def call(line: str) -> int:
    """In this process, where that is cheaper; `route` switches the collector off."""
    try:
        return main(line.split())
    finally:
        gc.enable()
