"""Clock, journal and disks of the machine itself."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fleettui.decide.host_reasons import DISK_LIMIT_PERCENT, used_percent
from fleettui.fleet.doctor.check import Check, Outcome, failed, passed, skipped, warned
from fleettui.fleet.doctor.context import Context
from fleettui.fleet.doctor.shell import not_without_posix
from fleettui.model.readings import DisksReading, DiskUse
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.clock import parse_epoch
from fleettui.probes.disks import parse_disks
from fleettui.probes.doctor import (
    JOURNAL_GROUPS,
    Account,
    JournalAnswer,
    RootMount,
    parse_journal,
    parse_root,
)
from fleettui.probes.frames import Section

SKEW_WARN_S = 2.0
SKEW_FAIL_S = 300.0
"""Certificates and tickets are refused from five minutes on."""
EARLIEST_S = 946_684_800
"""2000-01-01: machines without a battery for their clock start in 1970."""
FULL_PERCENT = 99.5
_NOTHING = Section(127, b"")


def judge_clock(printed: bytes, asked_at: float, answered_at: float) -> Outcome:
    """Their clock, as `date` printed it, against ours, as exactly as the round trip allows. Epoch seconds."""
    remote = parse_epoch(printed)
    if remote is None:
        said = clean_text(printed, 40)
        return skipped(f"date printed {said!r}" if said else "no date on the machine")
    earliest, latest = remote
    bound_s = (answered_at - asked_at + latest - earliest) / 2
    skew_s = (earliest + latest) / 2 - (asked_at + answered_at) / 2
    surely_s = max(0.0, abs(skew_s) - bound_s)
    side = "ahead of" if skew_s > 0 else "behind"
    evidence = f"{_seconds(abs(skew_s))} {side} ours (± {_seconds(bound_s)})"
    if surely_s <= SKEW_WARN_S:
        exact_s = abs(skew_s) + bound_s
        return passed(f"within {_seconds(exact_s)} of ours" if exact_s < SKEW_WARN_S else evidence)
    hint = "turn time synchronisation on there (chrony, systemd-timesyncd), or here"
    if earliest < EARLIEST_S:
        return failed("was never set: it counts from 1970", hint)
    return (failed if surely_s > SKEW_FAIL_S else warned)(evidence, hint)


def _seconds(value: float) -> str:
    if value < 1:
        return f"{max(0.01, value):.2f} s"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def judge_journal(kernel: JournalAnswer, ollama: JournalAnswer | None, account: Account | None) -> Outcome:
    """The kernel's log, where Xid errors stand, and Ollama's; `ollama` None: it is not declared."""
    user = account.user if account is not None and not isinstance(account.user, Unknown) else "the user"
    if "no_permission" in (kernel.state, ollama.state if ollama is not None else ""):
        groups = account.groups if account is not None else ()
        member = [group for group in groups if group in JOURNAL_GROUPS]
        of_which = f"; it is in {', '.join(member)}" if member else ""
        return warned(
            f"{user} may not read the system's journal{of_which}",
            f"let it: sudo usermod -aG systemd-journal {user} (or group adm; counts from the next login)",
        )
    if kernel.state in ("no_tool", "no_journal"):
        what = "no journalctl" if kernel.state == "no_tool" else "no journal is kept"
        return skipped(f"{what} on this machine")
    if kernel.state == "failed":
        return warned(f"journalctl: {kernel.text}", "run `journalctl -n 1 -k` there and see what it says")
    parts = ["kernel log readable" if kernel.state == "readable" else "readable, no kernel entry"]
    if ollama is not None:
        parts.append(
            {"readable": "Ollama's too", "empty": "no entry of a unit `ollama`"}.get(ollama.state, "")
        )
    return passed(", ".join(part for part in parts if part))


def judge_disks(disks: Maybe[DisksReading], root: Maybe[RootMount]) -> Outcome:
    """Room on the local file systems, and whether `/` can be written."""
    read_only = not isinstance(root, Unknown) and root.is_read_only
    if isinstance(disks, Unknown):
        return warned(disks.reason, "does a network mount hang? see `mount` and `df` there")
    full = sorted(_full_disks(disks.disks), reverse=True)
    if full:
        percent, mount, free_gib = full[0]
        more = f", {len(full) - 1} more over {DISK_LIMIT_PERCENT} %" if len(full) > 1 else ""
        outcome = failed if percent >= FULL_PERCENT else warned
        return outcome(
            f"{mount} is {int(percent)} % full ({free_gib:.1f} GiB free){more}",
            "remove models or other files",
        )
    if read_only and not isinstance(root, Unknown):
        return warned(
            f"/ is mounted read-only ({root.kind})",
            "after an error of the disk? see dmesg; normal for an image-based system",
        )
    if not disks.disks:
        return passed("no local disk is shown")
    most = max(disks.disks, key=lambda disk: used_percent(disk) or 0.0)
    return passed(
        f"{most.mount} is fullest, {int(used_percent(most) or 0)} % of {most.total_kib / 2**20:.0f} GiB"
    )


def _full_disks(disks: Sequence[DiskUse]) -> list[tuple[float, str, float]]:
    found = []
    for disk in disks:
        percent = used_percent(disk)
        if percent is not None and percent > DISK_LIMIT_PERCENT:
            found.append((percent, disk.mount, disk.free_kib / 2**20))
    return found


async def _check_clock(context: Context) -> Outcome:
    asked_at = time.time()
    frame = await context.ask("doctor", "clock")
    answered_at = time.time()
    return judge_clock(frame.sections.get("clock", _NOTHING).payload, asked_at, answered_at)


async def _check_journal(context: Context) -> Outcome:
    has_ollama = any(endpoint.kind == "ollama" for endpoint in context.machine.engines)
    sections = ("journal", "journal_ollama") if has_ollama else ("journal",)
    answers = (await context.ask("doctor", *sections)).sections
    kernel, ollama = (answers.get(name, _NOTHING) for name in ("journal", "journal_ollama"))
    return judge_journal(
        parse_journal(kernel.payload, kernel.exit_code),
        parse_journal(ollama.payload, ollama.exit_code) if has_ollama else None,
        context.account,
    )


async def _check_disks(context: Context) -> Outcome:
    answers = (await context.ask("doctor", "root", "disks")).sections
    disks = answers.get("disks", _NOTHING)
    root = answers.get("root", _NOTHING)
    return judge_disks(parse_disks(disks.payload, disks.exit_code), parse_root(root.payload))


SYSTEM_CHECKS = (
    Check("clock", "clock", _check_clock, ("shell",), not_without_posix),
    Check("journal", "journal", _check_journal, ("shell",), not_without_posix),
    Check("disk", "disk", _check_disks, ("shell",), not_without_posix),
)
