"""What keeps a machine from answering, across its row: an error with the next try, or a host key."""

from __future__ import annotations

from fleettui.model.snapshot import MachineSnapshot
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.machine_view import MachineView
from fleettui.view.text import cell_width, clean
from fleettui.view.units import remaining


def trouble_cells(view: MachineView, width: int) -> Cells:
    """At most `width` columns; what the operator needs to act is never cut before the rest."""
    snapshot = view.snapshot
    if snapshot.trust == "pending":
        return _pending_cells(view, width)
    if snapshot.trust == "key_changed":
        return _changed_cells(view, width)
    if snapshot.trust == "rejected":
        return (Cell("host key rejected, nothing is asked", "dim"),)
    if snapshot.health == "offline":
        return _offline_cells(view, width)
    link = snapshot.link
    at = f" {clean(link.address)}" if link.address else f" {clean(snapshot.machine.hostname)}"
    return (Cell(f"connecting to{at}" if link.state == "connecting" else "not asked yet", "dim"),)


def trust_steps(snapshot: MachineSnapshot) -> tuple[str, ...]:
    """What to do about a host key that is not approved: the reason's own words from the step on."""
    if snapshot.trust == "approved" or not snapshot.reasons:
        return ()
    reason = clean(snapshot.reasons[0].text)
    if snapshot.trust == "pending" and snapshot.link.offer is not None:
        return (reason, "what to run there to compare: fleettui machines list --pending")
    return (reason,)


def _offline_cells(view: MachineView, width: int) -> Cells:
    snapshot = view.snapshot
    is_expected = snapshot.is_out_of_service
    text = snapshot.reasons[0].text if snapshot.reasons else snapshot.link.error or "does not answer"
    tail = next_try_text(view)
    if is_expected:
        tail = f"; expected: {outage_word(snapshot)}{tail}"
    text, room = clean(text), width - len(tail)
    if cell_width(text) > room and snapshot.link.address:
        text = text.removeprefix(
            f"{clean(snapshot.link.address)}: "
        )  # the row says whose; what it is matters
    first = Cell(text, "dim" if is_expected else "bad")
    if width_of((first,)) > room:
        if room < 20:
            return (first,)
        return (*fit_cells((first,), room, "left", view.layout.glyphs.ellipsis), Cell(tail, "dim"))
    return (first, Cell(tail, "dim"))


def outage_word(snapshot: MachineSnapshot) -> str:
    """Why nobody need be alarmed: `in maintenance` or `drained`."""
    return "drained" if snapshot.maintenance is None else "in maintenance"


def next_try_text(view: MachineView) -> str:
    """`; next try in 12s`; nothing while connected or when nothing is tried."""
    link = view.snapshot.link
    if link.state == "connecting":
        return "; trying now"
    if link.next_try_at is None:
        return ""
    left = link.next_try_at - view.now
    if left <= 0:
        return "; trying now"
    return f"; next try in {max(1, round(left))} s" if left < 90 else f"; next try in {remaining(left)}"


def _pending_cells(view: MachineView, width: int) -> Cells:
    offer = view.snapshot.link.offer
    if offer is None:
        error = view.snapshot.link.error
        return (Cell(clean(error) if error else "host key not read yet", "dim"),)
    hint = "  a to review" if view.layout.has_hints else ""
    expired: Cells = (Cell("expired  ", "warn"),) if offer.has_expired(view.now) else ()
    start: Cells = (*expired, Cell(offer.code, "accent"), Cell(f"  {clean(offer.key_type)}", "dim"))
    fingerprint = clean(offer.fingerprint)
    full: Cells = (*start, Cell(f"  {fingerprint}"), Cell(hint, "key"))
    if width_of(full) <= width:
        return full
    room = width - width_of(start) - 2 - len(hint)
    if room < 12:
        return (*start, Cell(hint, "key"))
    head = room - 4
    return (*start, Cell(f"  {fingerprint[:head]}…{fingerprint[-3:]}"), Cell(hint, "key"))


def _changed_cells(view: MachineView, width: int) -> Cells:
    offer = view.snapshot.link.offer
    if offer is None:
        return (Cell("host key changed, polling stopped", "bad"),)
    known = clean(", ".join(offer.expected)) or "another key"
    text = f"approved {known}, now {clean(offer.fingerprint)} ({offer.code})"
    if len(text) <= width:
        return (Cell(text, "bad"),)
    return (Cell(f"another key than approved, now {offer.code} {clean(offer.fingerprint)}", "bad"),)
