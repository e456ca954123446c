"""The GPU loop under real shells, with stand-ins for nvidia-smi: every way it may misbehave."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from loop_runner import SHELLS, Loop, find_shell, wait_until, write_tool
from smi_stand_in import suspend_card, write_smi

from fleettui.model.unknown import Unknown
from fleettui.probes import nvidia, processes
from fleettui.probes.loops_gpu import FAST_FIELDS

ROW = "0, GPU-a0, NVIDIA X Ω, 550.1, 100, 1, 99, 7, 41, 34.12, 350.00, 0, P8, 00000000:01:00.0"
SHORT_LIMIT = (("${T:+$T 15}", "${T:+$T 1}"), ("-ge 1400 ]", "-ge 100 ]"), ("timeout -k 2", "timeout -k 1"))

has_real_tool = any(
    (Path(place) / "nvidia-smi").exists()
    for place in ("/usr/bin", "/usr/local/bin", "/usr/lib/wsl/lib", "/opt/bin")
)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return find_shell(str(request.param))


def started(folder: Path) -> int:
    """How often the stand-in was started: it adds a line to a file."""
    path = folder / "started"
    return len(path.read_text().splitlines()) if path.exists() else 0


def count_starts(folder: Path) -> str:
    return f"echo >>{folder}/started"


def test_cards_processes_and_owners(shell: str, tmp_path: Path) -> None:
    write_tool(
        tmp_path / "bin",
        "nvidia-smi",
        f'case "$*" in *compute-apps*) echo "GPU-a0, {os.getpid()}, /opt/My App, v2/wörker, 64";;'
        f' *--query-gpu=index,name,memory.total\\ *) echo "0, NVIDIA X, 100";; *) echo "{ROW}";; esac',
    )
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        answer = loop.ask("gpu", "apps", "ps")
        dropped = loop.ask("gpu:index:name:memory.total")
    finally:
        loop.close()
    card = nvidia.parse_gpus(answer["gpu"].payload, answer["gpu"].exit_code).cards[0]
    assert (card.name, card.total_mib) == ("NVIDIA X Ω", 100)
    apps = processes.parse_apps(answer["apps"].payload, answer["apps"].exit_code)
    assert not isinstance(apps, Unknown)
    owned = processes.with_owners(apps, processes.parse_owners(answer["ps"].payload)).processes[0]
    assert (owned.pid, owned.name, owned.used_mib) == (os.getpid(), "/opt/My App, v2/wörker", 64)
    assert "pytest" in str(owned.command) or "python" in str(owned.command)
    assert not isinstance(owned.user, Unknown)
    short = nvidia.parse_gpus(dropped["gpu"].payload, 0, ("index", "name", "memory.total"))
    assert short.cards[0].total_mib == 100


def test_owners_with_busybox_tools_only(tmp_path: Path) -> None:
    busybox = find_shell("busybox")
    bin_dir = tmp_path / "bin"
    write_tool(bin_dir, "nvidia-smi", f'echo "GPU-a0, {os.getpid()}, python, 64"')
    for applet in ("ps", "timeout", "df", "grep", "uname"):
        (bin_dir / applet).symlink_to(busybox)
    loop = Loop("gpu", f"{busybox} ash", path=bin_dir)
    try:
        answer = loop.ask("apps", "ps")
    finally:
        loop.close()
    owners = processes.parse_owners(answer["ps"].payload)
    assert list(owners) == [os.getpid()]
    facts = Loop("facts", f"{busybox} ash", path=bin_dir)
    try:
        slow = facts.ask("disks", "uname", "cpu")
    finally:
        facts.close()
    assert all(section.exit_code == 0 and section.payload for section in slow.values())


def test_unsupported_field_is_dropped_in_the_same_poll(shell: str, tmp_path: Path) -> None:
    write_smi(tmp_path / "bin", refuses=("fan.speed",))
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        section = loop.ask("gpu")["gpu"]
        refused = nvidia.parse_gpus(section.payload, section.exit_code, FAST_FIELDS).unsupported_fields
        section = loop.ask(nvidia.gpu_section(refused))["gpu"]
    finally:
        loop.close()
    assert refused == ("fan.speed",)
    card = nvidia.parse_gpus(section.payload, section.exit_code, nvidia.query_fields(refused)).cards[0]
    assert (card.pstate, card.utilisation_percent) == ("P0", 97)
    assert isinstance(card.fan_percent, Unknown)


def test_error_text_on_either_stream(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "nvidia-smi", "echo 'No devices were found' >&2; exit 6")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        section = loop.ask("gpu")["gpu"]
    finally:
        loop.close()
    problem = nvidia.parse_gpus(section.payload, section.exit_code).problem
    assert section.exit_code == 6
    assert problem is not None
    assert problem.code == "no_devices"


@pytest.mark.skipif(has_real_tool, reason="this machine has a real nvidia-smi")
def test_absent_tool_is_looked_for_again_only_on_request(shell: str, tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    loop = Loop("gpu", shell, path=bin_dir)
    try:
        assert loop.ask("gpu", "apps", "ps")["gpu"].exit_code == 127
        write_tool(bin_dir, "nvidia-smi", f'echo "{ROW}"')
        assert loop.ask("gpu")["gpu"].exit_code == 127
        assert loop.ask("find")["find"].payload == f"{bin_dir}/nvidia-smi".encode()
        assert loop.ask("gpu")["gpu"].exit_code == 0
    finally:
        loop.close()


def test_tool_outside_path_is_found(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "wsl", "nvidia-smi", f'echo "{ROW}"')
    changes = (("/usr/lib/wsl/lib", str(tmp_path / "wsl")),)
    loop = Loop("gpu", shell, changes=changes)
    try:
        assert loop.ask("gpu")["gpu"].payload.decode() == ROW
    finally:
        loop.close()


@pytest.mark.parametrize("body", ["exec sleep 1000", "sleep 1000; echo", "trap '' 15 1 2; sleep 1000; echo"])
def test_hanging_tool_is_ended_and_not_followed_by_a_second(shell: str, tmp_path: Path, body: str) -> None:
    write_tool(tmp_path / "bin", "nvidia-smi", f"{count_starts(tmp_path)}; {body}")
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=SHORT_LIMIT)
    try:
        answer = loop.ask("gpu", "apps")
        # The loop, its reader and the shell in front of both.
        wait_until(lambda: len(loop.session_pids()) <= 3)
    finally:
        loop.close()
    assert (answer["gpu"].exit_code, answer["apps"].exit_code) == (124, 124)
    assert started(tmp_path) == 1
    problem = nvidia.parse_gpus(answer["gpu"].payload, 124).problem
    assert problem is not None
    assert problem.code == "timed_out"


@pytest.mark.parametrize("body", ["exec sleep 1000", "trap '' 15 1 2; sleep 1000; echo"])
def test_end_of_input_during_a_hang_leaves_nothing(shell: str, tmp_path: Path, body: str) -> None:
    write_tool(tmp_path / "bin", "nvidia-smi", f"{count_starts(tmp_path)}; {body}")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    loop.send("gpu")
    wait_until(lambda: started(tmp_path) == 1)
    loop.close()
    wait_until(lambda: not loop.session_pids())


def test_killed_tool_is_no_time_limit(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "nvidia-smi", "kill -9 $$")
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        section = loop.ask("gpu")["gpu"]
    finally:
        loop.close()
    problem = nvidia.parse_gpus(section.payload, section.exit_code).problem
    assert section.exit_code == 137
    assert problem is not None
    assert problem.code == "killed"


def fake_proc(root: Path, pid: int, state: str, *, start: int, environ: str = "", ppid: int = 1) -> None:
    """A /proc with one nvidia-smi in it; fields of stat as in proc(5), start in 1/100 s after boot."""
    folder = root / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text("nvidia-smi\n")
    middle = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} (nvidia-smi) {state} {ppid} {middle} {start} 0 0\n")
    (folder / "environ").write_bytes(environ.replace(" ", "\0").encode())
    (root / "uptime").write_text("5000.00 9000.00\n")
    (root / "1").mkdir(exist_ok=True)
    (root / "1" / "comm").write_text("systemd\n")


# The row of `ps aux` in the samples: pid 935 in state D for months; and variations.
STUCK = [
    ("D", 100, "", True),
    ("D", 499_900, "", False),
    ("D", 499_900, "A=1 FLEETTUI_LOOP=gpu B=2", True),
    ("S", 100, "", False),
    ("S", 100, "FLEETTUI_LOOP=gpu", True),
    ("S", 499_900, "FLEETTUI_LOOP=gpu", False),
    ("Z", 100, "FLEETTUI_LOOP=gpu", False),
]


@pytest.mark.parametrize(("state", "start", "environ", "is_hung"), STUCK)
def test_new_channel_starts_no_second_one_beside_a_hung_one(
    shell: str, tmp_path: Path, state: str, start: int, environ: str, is_hung: bool
) -> None:
    proc = tmp_path / "proc"
    fake_proc(proc, 935, state, start=start, environ=environ)
    write_tool(tmp_path / "bin", "nvidia-smi", f'{count_starts(tmp_path)}; echo "{ROW}"')
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=(("/proc/", f"{proc}/"),))
    try:
        answer = loop.ask("gpu", "apps")
        if is_hung:
            assert (answer["gpu"].exit_code, answer["apps"].exit_code) == (75, 75)
            assert answer["gpu"].payload == f"hung 935 {state}".encode()
            assert started(tmp_path) == 0
            # It ends at last: the next poll starts one again.
            (proc / "935" / "stat").unlink()
            assert loop.ask("gpu")["gpu"].exit_code == 0
        else:
            assert answer["gpu"].exit_code == 0
    finally:
        loop.process.kill()  # this loop cannot see its group in the false /proc
        loop.close()


def test_real_leftover_is_seen(shell: str, tmp_path: Path) -> None:
    """A living process named nvidia-smi with our mark, older than its limit (here: 0 s)."""
    # A mark of its own: tests run beside each other, and here any age is too old.
    mark = f"FLEETTUI_LOOP_{os.getpid()}"
    write_tool(tmp_path / "old", "nvidia-smi", "read line")
    old = subprocess.Popen(
        [tmp_path / "old" / "nvidia-smi"],
        stdin=subprocess.PIPE,
        env={**os.environ, mark: "gpu"},
    )
    try:
        wait_until(lambda: Path(f"/proc/{old.pid}/comm").read_text() == "nvidia-smi\n")
        write_tool(tmp_path / "bin", "nvidia-smi", f'{count_starts(tmp_path)}; echo "{ROW}"')
        changes = (("-ge 20 ]", "-ge 0 ]"), ("FLEETTUI_LOOP", mark))
        loop = Loop("gpu", shell, path=tmp_path / "bin", changes=changes)
        try:
            assert loop.ask("gpu")["gpu"].payload.startswith(f"hung {old.pid} ".encode())
        finally:
            loop.close()
        assert started(tmp_path) == 0
    finally:
        old.communicate(b"\n", 5)


def test_sleeping_devices_are_not_woken(shell: str, tmp_path: Path) -> None:
    status, changes = suspend_card(tmp_path)
    write_tool(tmp_path / "bin", "nvidia-smi", f'{count_starts(tmp_path)}; echo "{ROW}"')
    loop = Loop("gpu", shell, path=tmp_path / "bin", changes=changes)
    try:
        section = loop.ask("gpu")["gpu"]
        assert section.exit_code == 76
        assert section.payload.strip() == f"{status}:suspended".encode()
        assert started(tmp_path) == 0
        status.write_text("active\n")
        assert loop.ask("gpu")["gpu"].exit_code == 0
    finally:
        loop.close()
    problem = nvidia.parse_gpus(section.payload, 76).problem
    assert problem is not None
    assert problem.code == "asleep"


def test_a_gpu_tick_starts_the_tool_and_its_limit_only(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "nvidia-smi", f'echo "{ROW}"')
    loop = Loop("gpu", shell, path=tmp_path / "bin")
    try:
        loop.ask("gpu")
        counts = []
        for _ in range(12):
            before = loop.forks()
            loop.ask("gpu")
            counts.append(loop.forks() - before)
    finally:
        loop.close()
    assert min(counts) == 2
