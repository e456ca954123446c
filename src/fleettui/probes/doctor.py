"""Answers of the doctor's own sections: who we are, the journal, `/`, listening sockets."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.machine_logs import judge_complaints

JOURNAL_GROUPS = ("systemd-journal", "adm", "wheel")
"""Groups that may read the whole journal: systemd, systemd-journald.service(8), ACCESS CONTROL."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account we are on the machine."""

    login_shell: Maybe[str]
    """Path."""
    user: Maybe[str]
    groups: tuple[str, ...]


def parse_who(payload: bytes) -> Account:
    """The account of section `who`: login shell, user and groups, a line each."""
    lines = [clean_text(line) for line in payload.split(b"\n")]
    lines += [""] * (3 - len(lines))
    missing = Unknown("not printed")
    return Account(lines[0] or missing, lines[1] or missing, tuple(lines[2].split()))


JournalState = Literal["readable", "empty", "no_permission", "no_journal", "no_tool", "failed"]


@dataclass(frozen=True, slots=True)
class JournalAnswer:
    """Whether a log can be read."""

    state: JournalState
    text: str = ""
    """The log's last line, or what journalctl complains of."""


def parse_journal(payload: bytes, exit_code: int) -> JournalAnswer:
    """What section `journal` says, journalctl's stdout and stderr together."""
    lines = [clean_text(line) for line in payload.split(b"\n")]
    # Old versions print `-- Logs begin at …` in front.
    entries = [line for line in lines if line and not line.startswith("-- ")]
    state, complaint = judge_complaints(entries, exit_code)
    if state != "readable":
        return JournalAnswer(state, complaint)
    return JournalAnswer("readable", entries[-1]) if entries else JournalAnswer("empty")


@dataclass(frozen=True, slots=True)
class RootMount:
    """How `/` is mounted."""

    device: str
    kind: str
    """File system: `ext4`, `overlay`."""
    is_read_only: bool


def parse_root(payload: bytes) -> Maybe[RootMount]:
    """The mount of section `root`: device, kind and options, as in /proc/mounts."""
    words = clean_text(payload, 2000).split(" ")
    if len(words) != 3:
        return Unknown("/proc/mounts tells nothing of /")
    return RootMount(clean_text(words[0]), clean_text(words[1]), "ro" in words[2].split(","))


def parse_listen(payload: bytes, port: int) -> Maybe[tuple[str, ...]]:
    """Addresses that listen on the port, from rows of /proc/net/tcp and tcp6 in state 0A (LISTEN).

    `0.0.0.0`, `127.0.0.1`, `::`, `::1` and the like; Unknown when there is no row at all. Addresses are
    hexadecimal words of 32 bit in the machine's byte order, here little-endian (proc(5)).
    """
    found: list[str] = []
    has_row = False
    for line in payload.split(b"\n"):
        words = line.decode("ascii", "replace").split()
        if len(words) < 4 or words[3] != "0A":
            continue
        address, _, number = words[1].partition(":")
        try:
            is_ours = int(number, 16) == port
            text = _address_text(bytes.fromhex(address))
        except ValueError:
            continue
        has_row = has_row or bool(text)
        if is_ours and text and text not in found:
            found.append(text)
    return tuple(found) if has_row else Unknown("no listening socket is shown")


def _address_text(raw: bytes) -> str:
    if len(raw) == 4:
        return ".".join(str(byte) for byte in reversed(raw))
    if len(raw) != 16:
        return ""
    straight = b"".join(raw[at : at + 4][::-1] for at in range(0, 16, 4))
    if straight[:12] == bytes(10) + b"\xff\xff":
        return ".".join(str(byte) for byte in straight[12:])
    if not any(straight[:15]):
        return "::1" if straight[15] == 1 else "::" if straight[15] == 0 else f"::{straight[15]:x}"
    return ":".join(f"{straight[at] << 8 | straight[at + 1]:x}" for at in range(0, 16, 2))


def is_loopback(address: str) -> bool:
    """Nobody but the machine itself reaches it."""
    return address == "::1" or address.startswith("127.")
