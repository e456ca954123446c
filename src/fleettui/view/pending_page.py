"""Machines that wait for the operator's decision: a line for each, and a page about the key of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from fleettui.model.approval import COMPARE_LINE, FINGERPRINT_DECIDES, PENDING_S, PENDING_WORDS, code_of
from fleettui.model.literal import Literal
from fleettui.model.snapshot import FleetSnapshot, HostKeyOffer, MachineSnapshot
from fleettui.view.cells import Cell, Cells, Tone, fit_cells
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import cell_width, clean, wrap
from fleettui.view.units import count, duration, remaining

Wait = Literal["changed", "pending", "expired", "unread", "rejected"]
_ORDER: tuple[Wait, ...] = ("changed", "pending", "expired", "unread", "rejected")
_WORDS: dict[Wait, tuple[str, Tone]] = {
    "changed": ("HOST KEY CHANGED", "bad"),
    "pending": ("pending", "warn"),
    "expired": ("expired", "warn"),
    "unread": ("key not read yet", "dim"),
    "rejected": ("rejected", "dim"),
}
TWO_COLUMNS_FROM = 104
"""Two fingerprints of 50 columns fit side by side."""
LONGEST_NAME = 24

CHANGED_MEANS = (
    "It may have been installed anew, another machine may have its address now, or somebody sits between you "
    "and it. Find out which before you approve."
)
NOTHING_WAITS = "No machine waits for your decision."
HOW_MACHINES_JOIN = (
    "A machine with a host key that neither you nor known_hosts approved is listed here, and nothing is "
    "asked of it before you decide."
)


def wait_of(machine: MachineSnapshot, now: float) -> Wait | None:
    """Why the machine is in the panel; None: it is approved."""
    if machine.trust == "approved":
        return None
    if machine.trust == "rejected":
        return "rejected"
    offer = machine.link.offer
    if machine.trust == "key_changed":
        return "changed"
    if offer is None:
        return "unread"
    return "expired" if offer.has_expired(now) else "pending"


def listed_machines(fleet: FleetSnapshot, now: float) -> list[MachineSnapshot]:
    """Those that wait, the gravest first, then those that were rejected: that can be taken back here."""
    waits = [(wait, machine) for machine in fleet.machines if (wait := wait_of(machine, now)) is not None]
    return [machine for _, machine in sorted(waits, key=lambda item: _ORDER.index(item[0]))]


def waiting_title(machines: Sequence[MachineSnapshot]) -> str:
    """`2 machines wait for your decision`; those that were rejected do not wait."""
    waiting = sum(machine.trust != "rejected" for machine in machines)
    verb = "waits" if waiting == 1 else "wait"
    return f"{count(waiting, 'machine')} {verb} for your decision" if waiting else "Nothing waits"


def waiting_cells(machine: MachineSnapshot, now: float, name_width: int, glyphs: Glyphs) -> Cells:
    """`? kiosk  pending           13m left  KX7A-2MPD  ED25519`."""
    wait = wait_of(machine, now) or "unread"
    word, tone = _WORDS[wait]
    sign = {"changed": glyphs.unhealthy, "rejected": glyphs.offline}.get(wait, glyphs.unknown)
    name = fit_cells((Cell(clean(machine.name), "strong"),), name_width, "left", glyphs.ellipsis)
    offer = machine.link.offer
    cells: list[Cell] = [Cell(f" {sign} ", tone), *name, Cell(f"  {word:<16}  ", tone)]
    if offer is not None:
        cells += [Cell(f"{_time_of(machine, now):<9}  ", "dim"), Cell(offer.code, "accent")]
        cells.append(Cell(f"  {clean(offer.key_type)}", "dim"))
    return tuple(cells)


def name_width(machines: Sequence[MachineSnapshot]) -> int:
    """Columns for the longest of their names."""
    return min(LONGEST_NAME, max((cell_width(clean(machine.name)) for machine in machines), default=0))


def key_page(
    machine: MachineSnapshot,
    offer: HostKeyOffer | None,
    now: float,
    width: int,
    glyphs: Glyphs,
    route: Sequence[str] = (),
    *,
    is_low: bool = False,
) -> list[Cells]:
    """Everything to decide by. `route`: addresses as dialled, jump hosts first, the machine last; `is_low`:
    there are no lines to spare."""
    wait = wait_of(machine, now)
    address = route[-1] if route else machine.link.address or machine.machine.hostname
    name = clean(machine.name)
    word, tone = _WORDS[wait or "unread"]
    head: Cells = (Cell(name, "strong"), Cell(f"  {clean(address)}  ", "dim"), Cell(word, tone))
    gap: list[Cells] = [] if is_low else [()]
    lines: list[Cells] = [fit_cells(head, width, "left", glyphs.ellipsis), *gap]
    if offer is None:
        told = clean(machine.link.error or "")
        return lines + _prose(f"Its host key was not read yet. {told}".strip(), width, "dim", glyphs)
    lines += _both_keys(offer, width) if offer.expected else _one_key(offer)
    story = _story(machine, offer, wait, now)
    if story:
        lines += (*gap, *_prose(story, width, "dim", glyphs))
    if offer.expected:
        lines += (*gap, *_prose(CHANGED_MEANS, width, "warn", glyphs))
    lines += ((), *_compare(name, width, glyphs))
    if len(route) > 1:
        jumps = ", ".join(map(clean, route[:-1]))
        text = f"Reached through {jumps}: run the line on {name} itself, not there."
        lines += _prose(text, width, "dim", glyphs)
    return lines


def approval_question(machine: MachineSnapshot, offer: HostKeyOffer) -> str:
    """Asked before the key is approved; a changed one asks for the name instead."""
    name = clean(machine.name)
    again = "It was rejected before. " if machine.trust == "rejected" else ""
    return f"{again}Did {name} itself print {clean(offer.fingerprint)}? Then Enter approves exactly this key."


def changed_question(machine: MachineSnapshot, offer: HostKeyOffer) -> str:
    """Stands above the line in which the name is to be typed."""
    name = clean(machine.name)
    return f"Type {name} to approve its new key {clean(offer.fingerprint)}; the old one counts no more."


def rejection_question(machine: MachineSnapshot) -> str:
    """Says what a rejection means, and how it is taken back."""
    name = clean(machine.name)
    return (
        f"Reject {name}? Nothing is asked of it any more, whatever known_hosts says. It stays in this list, "
        "where it can be approved after all. Enter rejects."
    )


def _time_of(machine: MachineSnapshot, now: float) -> str:
    offer = machine.link.offer
    if offer is not None and offer.expires_at is not None:
        return "" if offer.has_expired(now) else f"{remaining(offer.expires_at - now)} left"
    if machine.trust == "key_changed" and machine.link.since is not None:
        return f"for {duration(now - machine.link.since)}"
    return ""


def _story(machine: MachineSnapshot, offer: HostKeyOffer, wait: Wait | None, now: float) -> str:
    """Since when it waits, and how long it will."""
    if wait == "rejected":
        return clean(machine.link.error or "It was rejected: nothing is asked of it.").partition(";")[0]
    if wait == "changed":
        since = machine.link.since
        when = "" if since is None else f", seen for {duration(now - since)}"
        return f"{clean(offer.key_type)}{when}. Not polled until you decide; does not expire."
    if offer.expires_at is None:
        return ""
    seen = duration(now - (offer.expires_at - PENDING_S))
    if wait == "expired":
        return (
            f"First seen {seen} ago, nobody decided within {PENDING_WORDS}: nothing is asked of it any more "
            "until you approve it or read its key again."
        )
    return f"First seen {seen} ago. Undecided it expires in {remaining(offer.expires_at - now)}."


def _one_key(offer: HostKeyOffer) -> list[Cells]:
    return [
        _row("fingerprint", Cell(clean(offer.fingerprint), "strong")),
        _row("code", Cell(offer.code, "accent"), Cell(f"  {clean(offer.key_type)}")),
    ]


def _both_keys(offer: HostKeyOffer, width: int) -> list[Cells]:
    """What was approved beside what the machine shows; below each other where it is narrow."""
    known = [(clean(key), code_of(key)) for key in offer.expected]
    new, kind = clean(offer.fingerprint), clean(offer.key_type)
    if width < TWO_COLUMNS_FROM:
        old = [(Cell("approved  ", "dim"), Cell(f"{key}  {code}")) for key, code in known]
        return [*old, (Cell("now       ", "dim"), Cell(f"{new}  {offer.code}", "bad"))]
    old_cells = [Cell(text) for key, code in known for text in (key, code)]
    new_cells = [Cell(new, "bad"), Cell(f"{offer.code}  {kind}", "bad")]
    column = (width - 2) // 2
    return [
        (*fit_cells((Cell("approved", "dim"),), column), Cell("  "), Cell("now", "dim")),
        *(
            (*fit_cells((left,), column), Cell("  "), right)
            for left, right in zip_longest(old_cells, new_cells, fillvalue=Cell(""))
        ),
    ]


def _compare(name: str, width: int, glyphs: Glyphs) -> list[Cells]:
    intro = f"In sh on {name}, this prints code and fingerprint of all of its keys:"
    lines = _prose(intro, width, "plain", glyphs)
    lines += [(Cell("  "), Cell(part, "accent")) for part in _parts(COMPARE_LINE, max(20, width - 2))]
    return lines + _prose(FINGERPRINT_DECIDES.capitalize() + ".", width, "plain", glyphs)


def _parts(line: str, width: int) -> Iterator[str]:
    """The line as it is, cut behind blanks."""
    while len(line) > width:
        end = line.rfind(" ", 0, width) + 1 or width
        yield line[:end]
        line = line[end:]
    yield line


def _row(label: str, *cells: Cell) -> Cells:
    return (Cell(f"{label:<12} ", "dim"), *cells)


def _prose(text: str, width: int, tone: Tone, glyphs: Glyphs) -> list[Cells]:
    return [(Cell(line, tone),) for line in wrap(glyphs.plain(text), width)]
