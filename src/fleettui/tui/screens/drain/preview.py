"""What a drain would do now, worked out beside the screen and anew as the fleet changes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import DrainOptions, DrainPlan

if TYPE_CHECKING:
    from fleettui.fleet.drain.desk import DrainDesk
    from fleettui.tui.app import FleetApp

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""A plan is made at most this often while only the fleet changes."""


class Previews:
    """The last plans, and what they were made of."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self.plans: tuple[DrainPlan, ...] = ()
        self.error = ""
        """Why there is none."""
        self._made_for: object = None
        self._seq = -1
        self._made_at = float("-inf")
        self._is_working = False
        self.made = 0
        """How often they were made so far."""

    def is_of(self, names: Sequence[str], options: DrainOptions) -> bool:
        """The plans are those of these machines and options."""
        return self._made_for == (tuple(names), options)

    def look(self, desk: DrainDesk, names: Sequence[str], options: DrainOptions, seq: int) -> None:
        """Make them anew where something changed. `seq`: of the snapshot."""
        if self._is_working:
            return
        is_same = self.is_of(names, options)
        if is_same and (seq == self._seq or monotonic() - self._made_at < AGAIN_S):
            return
        self._is_working = True
        self._app.run_worker(self._make(desk, tuple(names), options, seq), group="drain preview")

    async def _make(self, desk: DrainDesk, names: tuple[str, ...], options: DrainOptions, seq: int) -> None:
        try:
            self.plans, self.error = await desk.preview(names, options), ""
        except DrainError as error:
            self.plans, self.error = (), error.text
        except Exception as error:
            # A defect of ours must not take the dashboard away from whoever drains with it.
            log.exception("a drain cannot be planned")
            self.plans, self.error = (), f"it cannot be planned: {error!r}; the log has more"
        finally:
            self._is_working = False
            self._made_at = monotonic()
        self._made_for, self._seq = (names, options), seq
        self.made += 1
        self._app.painter.request()
