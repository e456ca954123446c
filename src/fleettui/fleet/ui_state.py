"""What the dashboard remembers between runs: read and written off the event loop, never an error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from fleettui.store.database import Store, StoreError
from fleettui.store.ui_state import load_parts, save_parts

Parts = Mapping[str, Mapping[str, object]]
"""By name of the screen; values are JSON's."""

log = logging.getLogger(__name__)


class UiState:
    """The dashboard's own part of the state database, for one machines folder."""

    def __init__(self, state_dir: str, machines_dir: str) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.error: str | None = None
        """Why nothing is remembered; None while all is well."""

    async def load(self) -> Parts:
        """What the last run left; nothing where it cannot be read."""
        return await asyncio.to_thread(self._load)

    async def save(self, parts: Parts) -> bool:
        """Replace these parts; False where that failed, `error` says why."""
        return await asyncio.to_thread(self._save, parts)

    def _load(self) -> Parts:
        try:
            store = Store.open_readonly(self.state_dir)
            if store is None:
                return {}
            with store:
                return load_parts(store, self.machines_dir)
        except StoreError as error:
            self._note(error)
            return {}

    def _save(self, parts: Parts) -> bool:
        try:
            with Store.open(self.state_dir) as store:
                save_parts(store, self.machines_dir, parts)
        except StoreError as error:
            self._note(error)
            return False
        self.error = None
        return True

    def _note(self, error: StoreError) -> None:
        if self.error is None:
            log.warning("what the screens show is not remembered: %s", error)
        self.error = f"sort, filter and open machines are not remembered: {error}"
