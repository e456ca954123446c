"""Decisions under way: they outlive the panel that began them, and what comes out is told wherever one is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from fleettui.fleet.trust_words import ShownKey, TrustError, TrustResult
from fleettui.model.snapshot import HostKeyOffer
from fleettui.view.cells import Tone
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.fleet.trust_operations import TrustOperations
    from fleettui.tui.app import FleetApp

Result = TypeVar("Result", TrustResult, ShownKey)


class Decisions:
    """One at a time for a machine, any number side by side."""

    def __init__(self, app: FleetApp, show: Callable[[str, Tone], bool]) -> None:
        self._app = app
        self._show = show
        """Takes what came out; False: the panel is gone."""
        self.busy: dict[str, str] = {}
        """What is done about a machine now, in words, by name."""
        self.read: dict[str, HostKeyOffer] = {}
        """Keys that were read on demand."""

    def approve(self, name: str, fingerprint: str) -> None:
        """Approve that key and none else."""
        doing = f"{name}: reading its key again, to approve none but this one …"
        self._start(name, doing, lambda trust: trust.approve(name, fingerprint), self._told)

    def reject(self, name: str) -> None:
        """Ask nothing of the machine any more."""
        self._start(name, f"{name}: being rejected …", lambda trust: trust.reject(name), self._told)

    def read_key(self, name: str, before: HostKeyOffer | None) -> None:
        """Ask for the key; `before`: the one that is shown."""
        self._start(
            name,
            f"{name}: reading its key …",
            lambda trust: trust.read_key(name),
            lambda shown: self._told_key(shown, before),
        )

    def _start(
        self,
        name: str,
        doing: str,
        decide: Callable[[TrustOperations], Awaitable[Result]],
        tell: Callable[[Result], tuple[str, Tone]],
    ) -> None:
        app, trust = self._app, self._app.service.trust
        if trust is None:
            self._show("Decisions are kept in the state folder, and there is none.", "bad")
            return
        self.busy[name] = doing

        async def run() -> None:
            tone: Tone
            try:
                text, tone = tell(await decide(trust))
            except TrustError as error:
                text, tone = error.text, "bad"
            del self.busy[name]
            app.service.poll_now(name)  # what it shows now, or its figures at once
            if not self._show(text, tone):
                app.notify(clean(text), severity="error" if tone == "bad" else "information", markup=False)

        app.run_worker(run(), group="trust")

    def _told(self, result: TrustResult) -> tuple[str, Tone]:
        return result.text, "good" if result.outcome == "approved" else "plain"

    def _told_key(self, result: ShownKey, before: HostKeyOffer | None) -> tuple[str, Tone]:
        name, offer = result.machine.name, result.offer
        self.read[name] = offer
        shown = f"{offer.key_type} {offer.fingerprint}"
        if result.is_known:
            return f"{name} shows the approved key {shown} again: it is asked again.", "good"
        if before is not None and before.fingerprint != offer.fingerprint:
            return f"{name} shows another key now: {shown}", "bad"
        return f"{name} was asked just now and shows {shown}", "plain"
