"""Each login shell that the distribution packages, with rc files as people have them: on a real account of a
real sshd, polled by the real core."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from links import Lines, open_link
from links import until as until_true
from sshd_rig import SshdRig, why_no_namespace
from test_ssh_fleet import PS, machine, running, until, write_machine_file

from fleettui.net.connector import Connector
from fleettui.probes.frames import Frame, FrameReader, request_line
from fleettui.probes.loops import loop_command

pytestmark = pytest.mark.skipif(why_no_namespace() is not None, reason=why_no_namespace() or "")

Connect = Callable[..., Connector]
TOKEN = "0123456789abcdef"
BUSYBOX = "busybox sh"
"""busybox finds its applet by the name it is called with: a link in the machine's own folder."""

# What each shell reads for `-c` of sshd, measured with Debian's packages.
RC_FILES = {
    "bash": ".bashrc", "zsh": ".zshenv", "fish": ".config/fish/config.fish", "tcsh": ".tcshrc",
    "csh": ".cshrc",
}  # fmt: skip
SHELLS = ("bash", "dash", "zsh", "fish", "tcsh", "csh", "mksh", BUSYBOX)


def path_of(shell: str, folder: Path) -> str:
    """The shell's path on the machine; skips where it is not installed."""
    name = shell.partition(" ")[0]
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install {name}")
    if shell != BUSYBOX:
        return found
    link = folder / "ash"
    link.symlink_to(found)
    return str(link)


def write_rc(home: Path, shell: str, text: str) -> None:
    path = home / RC_FILES[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("shell", SHELLS)
async def test_every_login_shell_starts_both_loops(
    sshd_rig: SshdRig, connect: Connect, shell: str, tmp_path: Path
) -> None:
    server = sshd_rig.start(shell=path_of(shell, tmp_path))
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    shown = await Lines().open(link, "echo $0")
    await until_true(lambda: shown.ends)
    frames: list[Frame] = []
    ends: list[str] = []
    for kind, section in (("facts", "load"), ("gpu", "gpu")):
        reader = FrameReader(TOKEN)
        loop = await link.open_loop(
            loop_command(kind, TOKEN),  # type: ignore[arg-type]
            lambda data, reader=reader: frames.extend(reader.receive_data(data)),  # type: ignore[misc]
            ends.append,
        )
        loop.write(request_line(1, (section,)))
    await until_true(lambda: len(frames) == 2 or ends)
    assert (ends, losses) == ([], [])
    assert {name for frame in frames for name in frame.sections} == {"load", "gpu"}
    await link.close()
    await until_true(lambda: not server.remote_processes())


NOISY = {
    "it greets": ("bash zsh fish tcsh csh", "echo Welcome to gpu-07\necho 1, 2, 3\n"),
    "it greets with bytes": ("bash zsh", "printf '\\344\\033[31m\\036FT x 1\\n'\n"),
    "it complains": ("bash zsh fish tcsh", "stty erase x\n/no/such/tool\n"),
    "it floods": (
        "bash zsh",
        "i=0; while [ $i -lt 3000 ]; do echo fortune fortune fortune; i=$((i+1)); done\n",
    ),
    "it goes elsewhere": ("bash zsh fish tcsh", "cd /\n"),
    "it has a CDPATH": ("bash zsh", "export CDPATH=.:/tmp:/usr\n"),
    "it is strict": ("bash", "set -u\nset -e\nset -o pipefail\n"),
    "it has traps": ("bash zsh", "trap 'echo bye; exit 3' EXIT\ntrap 'echo debug' DEBUG\n"),
    "it sets a prompt": ("bash", 'PS1="\\u@\\h $(false) "\nPROMPT_COMMAND="echo prompt"\n'),
    "it has aliases": ("bash zsh fish", "alias read='echo no'\nalias printf='echo no'\nalias ls='ls -l'\n"),
    "it sets a language": (
        "bash zsh",
        "export LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 IFS=x POSIXLY_CORRECT=1\n",
    ),
    "it has a short path": ("bash zsh", "export PATH=$HOME/../bin\n"),
    "it goes on after an error": ("fish tcsh", "if\n"),
    "it has jobs": ("bash zsh", "sleep 0.1 &\n"),
    "it limits itself": ("bash zsh", "ulimit -c 0; ulimit -n 64; umask 077\n"),
}


@pytest.mark.parametrize(
    ("shell", "kind"), [(shell, kind) for kind, (shells, _) in NOISY.items() for shell in shells.split()]
)
async def test_what_rc_files_do_is_no_obstacle(
    sshd_rig: SshdRig, connect: Connect, shell: str, kind: str, tmp_path: Path
) -> None:
    server = sshd_rig.start(shell=path_of(shell, tmp_path))
    write_rc(server.folder / "home", shell, NOISY[kind][1])
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    frames: list[Frame] = []
    ends: list[str] = []
    reader = FrameReader(TOKEN)
    loop = await link.open_loop(
        loop_command("facts", TOKEN), lambda data: frames.extend(reader.receive_data(data)), ends.append
    )
    loop.write(request_line(1, ("load", "stat")))
    await until_true(lambda: frames or ends)
    assert (ends, losses) == ([], [])
    assert frames[0].sections["stat"].payload.startswith(b"cpu ")
    await link.close()
    await until_true(lambda: not server.remote_processes())


BROKEN = {
    "it leaves": ("bash", "exit 3\n", "the login shell gave no answer (ended with exit code 3)"),
    "it attaches tmux": (
        "bash",
        "exec tmux attach -t nothing\n",
        "the login shell gave no answer (ended with",
    ),
    "it takes exec for itself": ("zsh", "alias exec='echo no'\n", "remote said 'no /bin/sh -c"),
    "it says why it leaves": ("zsh", "echo use the portal; exit 1\n", "remote said 'use the portal'"),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_shell_that_gives_no_answer_is_told_and_hides_no_engine(
    sshd_rig: SshdRig, kind: str, tmp_path: Path
) -> None:
    shell, rc, words = BROKEN[kind]
    server, ollama = sshd_rig.start(shell=path_of(shell, tmp_path)), sshd_rig.ollama()
    ollama.answers["/api/ps"] = PS
    write_rc(server.folder / "home", shell, rc)
    folder = tmp_path / "machines"
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        snapshot = await until(
            service, lambda s: machine(s).health == "unhealthy" and machine(s).loaded, what="told"
        )
    ada = machine(snapshot)
    assert ada.link.state == "up"
    assert words in (ada.sources["cpu"].error or "")
    assert any(words in reason.text for reason in ada.reasons)
    assert [copy.name for copy in ada.loaded] == ["llama3.1:8b"]
    assert server.log_text().count("Accepted publickey") == 1


RESTRICTED = {
    "forced": ("echo This account is restricted.; exit 1", "remote said 'This account is restricted.'"),
    "lshell": (
        """echo '*** forbidden command over SSH: "x"'; echo This incident has been reported.""",
        "remote said '*** forbidden command over SSH: \"x\" / This incident has been reported.'",
    ),
    "rows": ("echo 0, GPU-1, NVIDIA; echo 1, 2, 3", "remote said '0, GPU-1, NVIDIA / 1, 2, 3'"),
    "bytes": ("printf '\\344\\033[31mno\\n'", "remote said '\N{REPLACEMENT CHARACTER}no'"),
}


@pytest.mark.parametrize("kind", RESTRICTED)
async def test_a_restricted_account_is_told_and_its_text_is_no_data(
    sshd_rig: SshdRig, kind: str, tmp_path: Path
) -> None:
    command, words = RESTRICTED[kind]
    server = sshd_rig.start(options={"ForceCommand": command})
    ollama = sshd_rig.ollama()
    ollama.answers["/api/ps"] = PS
    folder = tmp_path / "machines"
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        snapshot = await until(service, lambda s: machine(s).reasons and machine(s).loaded, what="told")
    ada = machine(snapshot)
    assert "the account is restricted" in ada.reasons[0].text
    assert words in (ada.sources["cpu"].error or "")
    assert (ada.gpu, ada.cpu, ada.memory) == (None, None, None)
    assert [copy.name for copy in ada.loaded] == ["llama3.1:8b"]


async def test_a_shell_that_hangs_is_told_with_what_it_said(sshd_rig: SshdRig, tmp_path: Path) -> None:
    server = sshd_rig.start(shell=path_of("bash", tmp_path))
    write_rc(server.folder / "home", "bash", "echo one moment; exec sleep 1000\n")
    folder = tmp_path / "machines"
    write_machine_file(folder, "ada", server, sshd_rig.user, gpus=0)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        snapshot = await until(service, lambda s: machine(s).link.state == "failed", 20.0, "told")
    assert machine(snapshot).link.stage == "session"
    assert "its shell does not answer" in (machine(snapshot).link.error or "")
    assert "one moment" in (machine(snapshot).link.error or "")
    assert machine(snapshot).sources["disks"].state == "never", "no df is to blame"


@pytest.mark.parametrize("sessions", ["1", "0"])
async def test_a_server_that_limits_sessions_keeps_what_works(
    sshd_rig: SshdRig, sessions: str, tmp_path: Path
) -> None:
    server, ollama = sshd_rig.start(options={"MaxSessions": sessions}), sshd_rig.ollama()
    ollama.answers["/api/ps"] = PS
    folder = tmp_path / "machines"
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        snapshot = await until(service, lambda s: machine(s).loaded and machine(s).reasons, what="told")
        if sessions == "1":
            snapshot = await until(service, lambda s: machine(s).cpu is not None, what="facts")
        await until(service, lambda s: s.taken_at > snapshot.taken_at + 2, what="two more seconds")
    ada = machine(snapshot)
    assert ada.link.state == "up"
    assert "the server limits sessions" in (ada.sources["gpu"].error or "")
    assert "MaxSessions" in ada.reasons[0].text
    assert ada.sources["ollama"].state == "ok"
    assert "Connection from" in server.log_text()
    assert server.log_text().count("Connection from") == 1, "no second connection"
