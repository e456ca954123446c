"""Bookkeeping of one source of a machine: asked, answered, failed, since when."""

from __future__ import annotations

from fleettui.model.snapshot import SourceState, SourceStatus


class SourceRecord:
    """Mutable twin of SourceStatus; `freeze()` gives the immutable one, the same object while unchanged."""

    __slots__ = ("_frozen", "_has_ended", "asked_at", "error", "read_at", "since", "state")

    def __init__(self) -> None:
        self.state: SourceState = "never"
        self.read_at: float | None = None
        self.since: float | None = None
        self.error: str | None = None
        self.asked_at: float | None = None
        self._frozen: SourceStatus | None = None
        self._has_ended = False
        """The present error is only that the asking ended."""

    def ask(self, now: float) -> None:
        """A question went out; the first one unanswered counts."""
        if self.asked_at is None:
            self.asked_at = now

    def succeed(self, now: float) -> None:
        """A good reading came."""
        self.read_at = now
        self.asked_at = self._frozen = None
        if self.state != "ok":
            self._become("ok", None, now)

    def fail(self, error: str, now: float) -> None:
        """The source answered, or was answered for, with an error."""
        self.asked_at = None
        self._become("error", error, now)

    def end(self, error: str, now: float) -> None:
        """What asks the source ended; the next one says nothing of this."""
        self.fail(error, now)
        self._has_ended = True

    def forget_end(self) -> None:
        """Asked anew: that the last asking ended is no news of the source, which may be asked rarely."""
        if self._has_ended and self.state == "error":
            self.state, self.error, self._frozen = "never" if self.read_at is None else "ok", None, None
        self._has_ended = False

    def drop(self, reason: str, now: float) -> None:
        """This machine has no such source."""
        self.asked_at = None
        self._become("unsupported", reason, now)

    def forget_question(self) -> None:
        """The connection ended; nothing is outstanding any more."""
        self.asked_at = None

    def restart_question(self, now: float) -> None:
        """What is outstanding counts as asked now: the clock jumped."""
        if self.asked_at is not None:
            self.asked_at = now
            if self.state == "late":
                self.since, self._frozen = now, None

    def mark_late(self, now: float, limit_s: float, error: str) -> bool:
        """Turn late when the oldest question waits longer than `limit_s`; True if that is news."""
        if self.asked_at is None or self.state == "late" or now - self.asked_at <= limit_s:
            return False
        self._become("late", error, self.asked_at)
        return True

    def _become(self, state: SourceState, error: str | None, now: float) -> None:
        if state != self.state:
            self.state, self.since = state, now
        self.error = error
        self._frozen = None
        self._has_ended = False

    def freeze(self) -> SourceStatus:
        """The immutable status."""
        if self._frozen is None:
            self._frozen = SourceStatus(self.state, self.read_at, self.since, self.error)
        return self._frozen
