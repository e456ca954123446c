"""The fact loop and a df that hangs in the kernel: found by the next loop, never started twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_runner import SHELLS, Loop, find_shell, write_tool

from fleettui.fleet.needs import EVERYTHING
from fleettui.fleet.questions import Questions
from fleettui.model.unknown import Unknown
from fleettui.probes import disks

TABLE = """Filesystem 1024-blocks Used Available Capacity Mounted on
/dev/sda1 1000 400 600 40% /
"""


def fake_proc(root: Path, pid: int, state: str, *, start: int, environ: str) -> None:
    """A /proc with one df in it; fields of stat as in proc(5), start in 1/100 s after boot."""
    folder = root / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text("df\n")
    middle = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} (df) {state} 1 {middle} {start} 0 0\n")
    (folder / "environ").write_bytes(environ.replace(" ", "\0").encode())
    (root / "uptime").write_text("5000.00 9000.00\n")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("state", "start", "environ", "is_hung"),
    [
        ("D", 499_400, "A=1 FLEETTUI_LOOP=facts B=2", True),
        ("D", 499_900, "FLEETTUI_LOOP=facts", False),  # at work for a second
        ("D", 100, "A=1", False),  # somebody else's
        ("S", 499_400, "FLEETTUI_LOOP=facts", False),
        ("S", 100, "FLEETTUI_LOOP=facts", True),  # older than any limit
        ("Z", 100, "FLEETTUI_LOOP=facts", False),
    ],
)
def test_a_new_loop_starts_no_second_df_beside_a_hung_one(
    shell: str, tmp_path: Path, state: str, start: int, environ: str, is_hung: bool
) -> None:
    proc = tmp_path / "proc"
    fake_proc(proc, 935, state, start=start, environ=environ)
    write_tool(tmp_path / "bin", "df", f"echo >>{tmp_path}/started; cat <<'X'\n{TABLE}X")
    loop = Loop("facts", find_shell(shell), path=tmp_path / "bin", changes=(("/proc/", f"{proc}/"),))
    try:
        first = loop.ask("disks")["disks"]
        assert (first.exit_code == 75) == is_hung
        assert (tmp_path / "started").exists() != is_hung
        reading = disks.parse_disks(first.payload, first.exit_code)
        assert isinstance(reading, Unknown) == is_hung
        if isinstance(reading, Unknown):
            assert "still hangs" in reading.reason
        (proc / "935" / "stat").unlink()  # it ends at last: the next question starts one again
        assert loop.ask("disks")["disks"].exit_code == 0
    finally:
        loop.process.kill()  # this loop cannot see its group in the false /proc
        loop.close()


def test_a_df_given_up_is_asked_again_by_the_next_connection_or_the_operator() -> None:
    """The next connection's loop looks whether the old one still hangs."""
    questions = Questions(EVERYTHING)
    ask_facts(questions, 1000.0)
    assert "disks" in ask_facts(questions, 1002.0)
    questions.facts.give_up_hanging(("disks",))
    assert "disks" not in ask_facts(questions, 2000.0)
    questions.restart()
    assert "disks" not in ask_facts(questions, 2002.0), "a clock that jumped frees no file system"
    for begin in (questions.ask_all_again, questions.begin_connection):
        questions.facts.give_up_hanging(("disks",))
        begin()
        ask_facts(questions, 3000.0)
        assert "disks" in ask_facts(questions, 3002.0)


def ask_facts(questions: Questions, now: float) -> tuple[str, ...]:
    sections = questions.facts_due(now)
    questions.note_asked(sections, now)
    return sections
