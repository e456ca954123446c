"""Lines of journalctl (`-o short-iso`), dmesg and log files -> log lines. Any bytes, any split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from fleettui.model.literal import Literal
from fleettui.model.log import LogGroup, LogLine
from fleettui.model.record import dataclass
from fleettui.model.unknown import Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.cpu import parse_uptime
from fleettui.probes.loops_logs import LOG_BYTES_KEPT

MAX_LINE_CHARS = 1000
_MAX_HELD = 16_384
"""Bytes kept of a line whose end has not come."""

_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}")
# 2026-03-10T09:15:30+0000 ada kernel: …; systemd 255 and later: +00:00. An identifier may hold blanks.
_ENTRY = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)([+-]\d\d):?(\d\d) (\S+) ([^:\[]{1,100})(?:\[\d+\])?: ?"
)
_DMESG = re.compile(rb"(?:<\d+>)?\[ *(\d{1,9}(?:\.\d{1,9})?)\] ?")
_GPU_WORDS = re.compile(r"NVRM|\bXid\b|\bnvidia|\bnvlink|\bNVSwitch|\bamdgpu\b", re.IGNORECASE)
_ENGINES = ("ollama", "vllm", "llama", "sglang", "lmstudio", "lms")

LogKind = Literal["log", "follow"]
LogState = Literal["readable", "no_permission", "no_tool", "no_journal", "failed"]


@dataclass(frozen=True, slots=True)
class LogText:
    """What one answer held."""

    lines: tuple[LogLine, ...]
    state: LogState = "readable"
    complaint: str = ""
    """The tool's own words where it could not do all of it."""
    is_cut: bool = False
    """Older lines were left on the machine."""


def is_unit(name: str) -> bool:
    """True for a name that may be asked for: one word to any shell, no option, no pattern."""
    return bool(_UNIT.fullmatch(name))


def log_section(kind: LogKind, since_s: int, unit: str | None) -> str:
    """The section that asks for it. ValueError for what is no unit."""
    if unit is not None and not is_unit(unit):
        raise ValueError(f"no unit: {unit!r}")
    seconds = max(1, min(int(since_s), 366 * 86_400))
    return f"{kind}:{seconds}" + (f":{unit}" if unit else "")


def group_of(source: str, text: str) -> LogGroup:
    """Where a line belongs, by who wrote it; systemd's own lines by the unit they begin to speak of."""
    name = source.lower()
    if name == "kernel":
        return "gpu" if _GPU_WORDS.search(text) else "kernel"
    if name.startswith(("nvidia-", "nv-")):
        return "gpu"
    if name.startswith(_ENGINES):
        return "engine"
    if name == "systemd":
        if "nvidia-" in text:
            return "gpu"
        if any(engine in text for engine in _ENGINES):
            return "engine"
    return "other"


class JournalReader:
    """journalctl's output, as it comes. Holds no more than one line."""

    def __init__(self) -> None:
        self._held = b""
        self._is_skipping = False
        """The rest of a line of which enough is known."""
        self._last: LogLine | None = None
        self.complaints: list[str] = []
        """What journalctl said itself, at most 20 lines."""

    def receive_data(self, data: bytes) -> list[LogLine]:
        """The lines that are whole now."""
        *whole, rest = data.split(b"\n")
        found: list[LogLine] = []
        for part in whole:
            raw, self._held = self._held + part, b""
            if self._is_skipping:
                self._is_skipping = False
                continue
            found += self._read(raw)
        if self._is_skipping:
            return found
        self._held += rest
        if len(self._held) > _MAX_HELD:
            found += self._read(self._held)
            self._held, self._is_skipping = b"", True
        return found

    def finish(self) -> list[LogLine]:
        """The last line, where it has no end."""
        held, self._held = self._held, b""
        return self._read(held) if held and not self._is_skipping else []

    def _read(self, raw: bytes) -> list[LogLine]:
        raw = raw[:_MAX_HELD]
        entry = _ENTRY.match(raw)
        if entry is not None:
            at = _epoch_s(entry)
            if at is not None:
                source = clean_text(entry[5], 60)
                text = clean_text(raw[entry.end() :], MAX_LINE_CHARS)
                self._last = LogLine(at, source, text, group_of(source, text))
                return [self._last]
        if raw[:1] == b" " and self._last is not None:  # the message goes on
            text = clean_text(raw, MAX_LINE_CHARS)
            return [LogLine(self._last.at, self._last.source, text, self._last.group)] if text else []
        text = clean_text(raw)
        if text and not text.startswith("-- ") and len(self.complaints) < 20:
            self.complaints.append(text)
        return []


def _epoch_s(entry: re.Match[bytes]) -> float | None:
    try:
        moment = f"{entry[1].decode()}{entry[2].decode()}:{entry[3].decode()}"
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError):
        return None


def parse_log(payload: bytes, exit_code: int) -> LogText:
    """Section `log`: the entries, and why there are none or not all."""
    is_cut = len(payload) >= LOG_BYTES_KEPT - 1
    body, _, last = payload.rstrip(b"\n").rpartition(b"\n")
    words = last.split()
    if len(words) == 2 and words[0] == b"rc" and words[1].isdigit() and len(words[1]) <= 3:
        exit_code = int(words[1])
    else:
        body = payload
    if is_cut:
        body = body.partition(b"\n")[2]  # of the first line only a part is there
    reader = JournalReader()
    lines = (*reader.receive_data(body + b"\n"), *reader.finish())
    state, complaint = judge_complaints(reader.complaints, exit_code)
    if state == "failed" and lines:
        state = "readable"
    return LogText(lines, state, complaint, is_cut)


def judge_complaints(complaints: list[str], exit_code: int) -> tuple[LogState, str]:
    """What journalctl's own words mean.

    Sentences: systemd, src/shared/journal-util.c and src/journal/journalctl.c; their exit code is 0 or 1 by
    version, so the text decides.
    """
    text = "\n".join(complaints)
    if "insufficient permissions" in text or "You are currently not seeing messages" in text:
        return "no_permission", complaints[0]
    if "No journal files were found" in text:
        return "no_journal", complaints[0]
    if exit_code in (126, 127):
        return "no_tool", ""
    if exit_code in (124, 137, 143):
        return "failed", "journalctl did not answer in time"
    if exit_code not in (0, 1) or (exit_code == 1 and complaints):
        return "failed", complaints[0] if complaints else f"journalctl ended with exit code {exit_code}"
    return "readable", complaints[0] if complaints else ""


def parse_dmesg(payload: bytes, now: float, since_s: float) -> LogText:
    """Section `dmesg`: entries of the last seconds. Their times count from the boot, which was `now` less the
    uptime; while the machine sleeps they stand still, so that after a sleep they seem too old."""
    first, _, rest = payload.partition(b"\n")
    uptime_s = parse_uptime(first)
    lines: list[LogLine] = []
    complaint = ""
    for raw in rest.split(b"\n"):
        stamp = _DMESG.match(raw)
        if stamp is None:
            if not lines and not complaint:
                complaint = clean_text(raw)
            continue
        text = clean_text(raw[stamp.end() : stamp.end() + _MAX_HELD], MAX_LINE_CHARS)
        at = uptime_s if isinstance(uptime_s, Unknown) else now - uptime_s + float(stamp[1])
        if text and (isinstance(at, Unknown) or at >= now - since_s):
            lines.append(LogLine(at, "kernel", text, group_of("kernel", text)))
    if "not permitted" in complaint or "ermission denied" in complaint:
        return LogText((), "no_permission", complaint)
    if "not found" in complaint:
        return LogText((), "no_tool", complaint)
    return LogText(tuple(lines), "readable")


def parse_log_files(payload: bytes) -> tuple[LogText, tuple[str, ...]]:
    """Section `logfiles`: the ends of files, without times, and the paths that may not be read."""
    lines: list[LogLine] = []
    closed: list[str] = []
    for path, raw in _file_lines(payload):
        if raw is None:
            closed.append(path)
            continue
        text = clean_text(raw[:_MAX_HELD], MAX_LINE_CHARS)
        source = path.rpartition("/")[2]
        if text:
            group = group_of(source, text)
            if group == "other" and _GPU_WORDS.search(text):
                group = "gpu"
            lines.append(LogLine(Unknown("no time"), source, text, group))
    return LogText(tuple(lines), "readable" if lines or not closed else "no_permission"), tuple(closed)


def _file_lines(payload: bytes) -> Iterator[tuple[str, bytes | None]]:
    path = ""
    for raw in payload.split(b"\n"):
        if raw.startswith(b"== /var/log/"):
            path = clean_text(raw[3:])
        elif raw.startswith(b"=x /var/log/"):
            yield clean_text(raw[3:]), None
        elif path:
            yield path, raw
