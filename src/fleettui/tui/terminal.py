"""The terminal that the dashboard writes to, which may be slow, stand still, or be gone at any moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from rich.color import ColorSystem
from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from fleettui.tui.answers import ASK, LIMIT_S, Answers
from fleettui.tui.quitting import QuitSignal
from fleettui.tui.screen_copy import ScreenCopy
from fleettui.tui.terminal_writer import TerminalWriter

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen

TERMINAL_GONE_EXIT = 129
"""As after SIGHUP, which says the same where somebody sends it."""
SLOW_FRAME_S = 0.1
"""A terminal that needs so long for a frame gets the next one in slices."""
FADING = 0.8
LAST_ANSWER_S = 0.5
"""How long the end waits for answers under way."""
SLICE = 4096
"""Characters in a slice; what the operator does in the meantime is in the next one."""


class TerminalDriver(LinuxDriver):
    """Textual's own, which never waits for the terminal, and ends the dashboard when that is gone.

    Textual's writer has a queue of 30 writes and the event loop waits for room in it: a slow terminal would
    stall every poll, one that is gone would do so for ever. Here one frame at most is under way, and the next
    is made of what differs when that is written.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        self._writer: TerminalWriter | None = None
        self._quit_signal: QuitSignal | None = None
        self._copy = ScreenCopy()
        self._cursor = (0, 0)
        self._is_synchronized = False
        self._is_held = False
        self._answers = Answers()
        self._asked = self._answered = 0
        self._frame_s = 0.0
        self.frames = 0
        """Handed to the terminal so far."""

    # Textual's side

    def start_application_mode(self) -> None:
        """Also after another program had the terminal."""
        file: Any = self._file
        file.flush()
        self._writer = TerminalWriter(
            file.fileno(), lambda: self._in_loop(self._take_written), lambda: self._in_loop(self._end)
        )
        self._writer.start()
        self._copy.forget()
        self._is_held = False
        self._answers = Answers()
        self._asked = self._answered = 0
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if self._writer_thread is not None:  # Textual's own, of no use here
            self._writer_thread.stop()
            self._writer_thread = None
        self._quit_signal = QuitSignal(file.fileno(), self.attrs_before)
        self._quit_signal.watch()
        self._in_loop(self._send)

    def write(self, data: str) -> None:
        """Queue what is not part of a frame; while another program has the terminal it is dropped."""
        if self._writer is not None:
            self._writer.write(data)

    def process_message(self, message: Message) -> None:
        """Called by the thread that reads keys; what answers our questions goes no further."""
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            self._answered += 1
            self._in_loop(self._take_answer)
            if self._answered > 1:
                return
        super().process_message(message)

    async def settle(self) -> None:
        """Before another program gets the terminal: what is under way arrives or is given up, while polling
        goes on. Nothing more is shown until the terminal is ours again."""
        self._is_held = True
        if self._writer is not None:
            await self._writer.settle()
        deadline = monotonic() + LAST_ANSWER_S
        while self._awaits_answers and monotonic() < deadline:  # noqa: ASYNC110 (answers come by a thread)
            await asyncio.sleep(0.01)
        self._answered = 0  # waited for enough

    @property
    def _awaits_answers(self) -> bool:
        return 0 < self._answered <= self._asked

    def disable_input(self) -> None:
        """The last answers are for us: another program would take them for something typed."""
        deadline = monotonic() + LAST_ANSWER_S
        while self._awaits_answers and monotonic() < deadline:
            sleep(0.01)
        self._answered = 0
        super().disable_input()

    def close(self) -> None:
        """The terminal is not ours from now on."""
        if self._quit_signal is not None:
            self._quit_signal.leave()
        if self._writer is not None:
            self._writer.stop()
            self._writer = None

    def say(self, text: str) -> None:
        """A line of ours while another program has the terminal."""
        with suppress(OSError, ValueError):
            file: Any = self._file
            file.write(text)
            file.flush()

    # Frames

    @property
    def is_behind(self) -> bool:
        """True while the terminal cannot take another frame."""
        return self._writer is not None and (self._writer.is_behind or self._answers.is_full)

    @property
    def frame_s(self) -> float:
        """Seconds that frames take to be written and shown, beyond what the line always takes."""
        return self._frame_s

    @property
    def bytes_written(self) -> int:
        """To the terminal, since it became ours."""
        return 0 if self._writer is None else self._writer.bytes_written

    def show(
        self,
        update: LayoutUpdate | ChopsUpdate,
        size: tuple[int, int],
        system: ColorSystem,
        cursor: tuple[int, int],
        is_synchronized: bool,
    ) -> None:
        """Show an update as soon as the terminal takes it."""
        self._copy.resize(*size)
        self._copy.take(update, system)
        self._cursor = cursor
        self._is_synchronized = is_synchronized
        self._send()

    def show_all_again(self, size: tuple[int, int] | None = None) -> None:
        """Something else wrote on the terminal: write all of it again; not with another size than it has."""
        if size in (None, self._copy.size):
            self._copy.forget()
            self._send()

    def _send(self) -> None:
        if self._writer is None or self._is_held or self.is_behind or not self._copy.is_due:
            return
        text = self._copy.changes(min(SLICE, self._answers.room) if self.frame_s > SLOW_FRAME_S else None)
        if text:
            x, y = self._cursor
            text = f"{text}\x1b[{y + 1};{x + 1}H"
            if self._is_synchronized:
                text = f"{SYNC_START}{text}{SYNC_END}"
            if self._answers.can_ask:
                text += ASK
                self._asked += 1
                self._answers.note_sent(len(text))
                self._loop.call_later(LIMIT_S, self._give_up_answers)
            self._writer.write_frame(text)
            self.frames += 1

    def _take_written(self) -> None:
        if self._writer is not None:
            self._note_pace(self._writer.frame_s)
        self._send()

    def _take_answer(self) -> None:
        self._answers.note_answer()
        self._note_pace(self._answers.lag_s)
        self._send()

    def _note_pace(self, seconds: float) -> None:
        """A short frame may be quick on a slow line: what was learnt of it fades."""
        self._frame_s = max(seconds, FADING * self._frame_s)

    def _give_up_answers(self) -> None:
        self._answers.give_up_old()
        self._send()

    # From the other threads

    def _in_loop(self, call: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: the dashboard has ended anyway
            self._loop.call_soon_threadsafe(call)

    def _end(self) -> None:
        self._app.exit(return_code=TERMINAL_GONE_EXIT)


class TerminalApp(App[None]):
    """An app on such a terminal."""

    @property
    def is_terminal_behind(self) -> bool:
        """True while the terminal has not taken the last frame."""
        return isinstance(self._driver, TerminalDriver) and self._driver.is_behind

    @property
    def terminal_frame_s(self) -> float:
        """Seconds that the last frame took to be written, or takes already."""
        return self._driver.frame_s if isinstance(self._driver, TerminalDriver) else 0.0

    def on_resize(self, event: events.Resize) -> None:
        """Said without a change when another terminal took over, as in tmux: it may show anything."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.show_all_again(event.size)

    def action_redraw(self) -> None:
        """Something else wrote on the terminal."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.show_all_again()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if not (isinstance(driver, TerminalDriver) and isinstance(renderable, (LayoutUpdate, ChopsUpdate))):
            super()._display(screen, renderable)
            return
        if self._batch_count or not self._running or self._closed:
            return
        x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
        system = self.console._color_system or ColorSystem.TRUECOLOR
        driver.show(renderable, self.size, system, (x, y), self._sync_available)
        self.post_display_hook()
