"""The Drain screen: what emptying machines would do, then how far it is, and every step that was made."""

from __future__ import annotations

from textual import events

from fleettui.model.drain import WORKING, DrainClass, DrainOptions
from fleettui.model.record import replace
from fleettui.tui.actions import bindings_for
from fleettui.tui.screens.drain.listing import planned_of, progress_of
from fleettui.tui.screens.drain.showing import ShowingScreen
from fleettui.view.drain_page import STALE_BEAT_S
from fleettui.view.drain_rows import needed_word


class DrainScreen(ShowingScreen):
    """Of one machine, or of several that are emptied together. Leaving it ends nothing."""

    BINDINGS = bindings_for("drain")
    is_drain = True

    # Which actions apply

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        offers = self._offers() if self.is_mounted else {}
        return super().check_action(action, parameters) if offers.get(action, True) else False

    def _offers(self) -> dict[str, bool]:
        """Which of the screen's own apply now."""
        has_preview, status = bool(self.preview_names), self.current_status
        state = None if status is None else status.drain.state
        row = self.current_row
        planned = planned_of(self.previews.plans, row) if has_preview else None
        copy = progress_of(self.statuses, row) if planned is None else None
        is_working, lock = state in WORKING, None if status is None else status.lock
        now = self.fleet_app.clock()
        is_left = is_working and (lock is None or now - lock.beat_at >= STALE_BEAT_S)
        has_load = status is not None and any(
            item.state in ("loading", "verifying") for item in status.copies
        )
        return {
            "drain_start": has_preview or state in ("blocked", "failed", "cancelled"),
            "open": not has_preview and state not in ("blocked", "failed", "cancelled"),
            "drain_allow": planned is not None and bool(needed_word(planned)),
            "drain_skip": planned is not None or (copy is not None and not copy.is_ended and is_working),
            "drain_cancel": is_working and not has_preview,
            "drain_abort": state == "cancelled" and has_load,
            "drain_take_over": is_left,
            "drain_journal": bool(self.statuses),
            "toggle_degraded": has_preview,
            "toggle_fetch": has_preview,
            "toggle_same_context": has_preview,
        }

    def note_cursor(self) -> None:
        """What the keys do depends on the line and on how far it is."""
        offers = (self._offers(), self.fleet_app.drains.is_flagged(self.current_machine))
        if offers != self.had_offers:
            self.had_offers = offers
            self.refresh_bindings()

    def on_cursor_view_cursor_moved(self) -> None:
        super().on_cursor_view_cursor_moved()
        self.show_detail()

    # Actions

    def action_drain_start(self) -> None:
        if not self.preview_names:
            self.is_again, self.view_now = True, "copies"
            if self.current_status is not None:
                drain = self.current_status.drain
                self.options = replace(drain.options, skips=())
                self.starting.prefill(drain.reason)
            self.show_again()
        elif self.previews.is_of(self.preview_names, self.options) and self.previews.plans:
            self.starting.ask(self.previews.plans)

    def action_open(self) -> None:
        if self.current_machine is not None:
            self.fleet_app.look_into(self.current_machine)

    def on_cursor_view_opened(self) -> None:
        if not self.preview_names:
            self.action_open()

    def action_drain_allow(self) -> None:
        line = planned_of(self.previews.plans, self.current_row)
        need = "" if line is None else needed_word(line)
        if line is not None and need == "class":
            self._force(line.drain_class, line.drain_class not in self.options.forced)
        elif need == "degraded":
            self.action_toggle_degraded()
        elif need == "pull":
            self.action_toggle_fetch()

    def _force(self, drain_class: DrainClass, is_allowed: bool) -> None:
        kept = [name for name in self.options.forced if name != drain_class]
        self._set_options(replace(self.options, forced=tuple([*kept, drain_class] if is_allowed else kept)))

    def action_drain_skip(self) -> None:
        line = planned_of(self.previews.plans, self.current_row) if self.preview_names else None
        copy = progress_of(self.statuses, self.current_row)
        if line is not None:
            name, skips = line.copy.name, self.options.skips
            is_left = self.options.skips_copy(line.copy)
            kept = tuple([item for item in skips if item != name])
            self._set_options(replace(self.options, skips=kept if is_left else (*kept, name)))
        elif copy is not None:
            self.fleet_app.drains.skip(copy.copy.machine, copy.copy.key)

    def action_toggle_degraded(self) -> None:
        self._set_options(replace(self.options, accept_degraded=not self.options.accept_degraded))

    def action_toggle_fetch(self) -> None:
        self._set_options(replace(self.options, allow_pull=not self.options.allow_pull))

    def action_toggle_same_context(self) -> None:
        self._set_options(replace(self.options, keeps_context=not self.options.keeps_context))

    def _set_options(self, options: DrainOptions) -> None:
        self.options = options
        self.show_again()

    def action_drain_cancel(self) -> None:
        if self.current_machine is not None:
            self.fleet_app.drains.cancel(self.current_machine)

    def action_drain_abort(self) -> None:
        if self.current_machine is not None:
            self.fleet_app.drains.cancel(self.current_machine, aborts_load=True)

    def action_drain_take_over(self) -> None:
        self.fleet_app.drains.take_over()

    def action_drain_journal(self) -> None:
        self.view_now = "copies" if self.view_now == "journal" else "journal"
        self.show_again()
        self.drain_list.move_cursor(0)

    def action_back(self) -> None:
        self.dismiss()

    async def on_click(self, event: events.Click) -> None:
        """An option was clicked."""
        if event.widget is not None and event.widget.id == "options":
            for span, action in self.chips.spots:
                if event.x in span:
                    await self.run_action(action)
