"""The decisions about host keys of one fleet: read from the state database, followed, changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fleettui.decide.trust import TrustTable
from fleettui.fleet.followed_state import FollowedState
from fleettui.model.trust import TrustDecision
from fleettui.net.key_rules import USUAL, KeyRule
from fleettui.store.database import StoreError
from fleettui.store.trust import change_decisions, load_decisions, read_revision

if TYPE_CHECKING:
    from fleettui.store.trust import Change, Key

log = logging.getLogger(__name__)


class TrustBook:
    """Calls may take as long as the disk does: off the event loop."""

    def __init__(self, state_dir: str, machines_dir: str, *, is_watching: bool = False) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.table: TrustTable | None = None
        """None until it could be read: then nobody can tell who was rejected."""
        self.error: str | None = None
        """Why decisions cannot be read or kept; None while all is well."""
        self._rows: tuple[TrustDecision, ...] = ()
        self._state = FollowedState[tuple[TrustDecision, ...]](
            state_dir, machines_dir, what="decisions about host keys", empty=(),
            load=load_decisions, read_revision=read_revision, is_watching=is_watching,
        )  # fmt: skip

    def refresh(self) -> bool:
        """Read again what changed; True where the table is another one now. Never raises."""
        with self._state.lock:
            try:
                rows = self._state.read()
            except StoreError as error:
                self._note_error(str(error))
                return False
            self.error = None
            if rows is None or (self.table is not None and rows == self._rows):
                return False
            self.table, self._rows = TrustTable(rows), rows
            return True

    def change(self, changes: Mapping[Key, Change]) -> bool:
        """Apply all changes or, when one raises, none; True where an entry differs now. Raises StoreError."""
        with self._state.open_for_change() as store:
            return change_decisions(store, self.machines_dir, changes)

    def jump_rule(self, address: str) -> KeyRule:
        """How the host key of a jump host is judged: by what was decided about a machine at that address."""
        if self.table is None:
            return USUAL
        pins, counts_known_hosts = self.table.jump_pins(address)
        return KeyRule(pins, counts_known_hosts)

    def close(self) -> None:
        """Close the file; more than once is fine."""
        self._state.close()

    def _note_error(self, text: str) -> None:
        if self.error is None:
            log.warning("decisions about host keys cannot be read: %s", text)
        self.error = f"decisions about host keys cannot be read: {text}"
