"""Handing the terminal to a shell on a machine, and taking it back; polling goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import termios
import time
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from fleettui.fleet.shell import ShellCommand
from fleettui.fleet.trust_words import TrustError
from fleettui.tui.terminal import TerminalDriver
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp

SSH_FAILED = 255
"""What ssh itself ends with when it could not connect; all else is the exit code of the far shell."""
GLANCE_S = 3.0
"""What fails sooner has said why, and nobody could read it."""
PARTING_S = 1.0
"""For a program that is told to end."""
NO_STATE = (
    "What was approved is kept in the state folder, and there is none: nobody logs in anywhere from here."
)
NO_TERMINAL = "This terminal cannot be handed to another program and taken back."


class ShellKey:
    """One shell at a time."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self._is_busy = False

    def open(self, name: str) -> None:
        """Log in there, on this terminal, until the operator leaves."""
        if not self._is_busy:
            self._is_busy = True
            self._app.run_worker(self._open(name), group="shell")

    async def _open(self, name: str) -> None:
        try:
            shells = self._app.service.shells
            if shells is None:
                self._fail(NO_STATE)
                return
            machine = self._app.snapshot.find(name)
            if machine is not None and machine.link.state != "up":
                self._app.notify(f"{clean(name)} is not connected; asking it for its key …", markup=False)
            with await shells.prepare(name) as command:
                await self._hand_over(name, command)
        except (TrustError, OSError) as error:
            self._fail(error.text if isinstance(error, TrustError) else f"{name}: no shell: {error}")
        finally:
            self._is_busy = False

    async def _hand_over(self, name: str, command: ShellCommand) -> None:
        app = self._app
        failure: OSError | None = None
        try:
            if isinstance(app._driver, TerminalDriver):
                await app._driver.settle()
            with app.suspend(), _signals_left_to_the_child():
                self._say(
                    f"{clean(name)}, {clean(command.where)}: leave the shell to come back to fleettui\n"
                )
                try:  # an error that left this block would leave the screen to the shell for good
                    await self._run(command)
                except OSError as error:
                    failure = error
        except SuspendNotSupported:
            self._fail(NO_TERMINAL)
            return
        if failure is not None:
            raise failure
        app.painter.paint_now()

    async def _run(self, command: ShellCommand) -> None:
        began = time.monotonic()
        code = await run_on_terminal(command.argv)
        if code == SSH_FAILED or (code and time.monotonic() - began < GLANCE_S):
            words = clean(shlex.join(command.argv))
            self._say(f"\n{words}\nended with {code}. Enter comes back to fleettui.\n")
            await _enter()

    def _say(self, text: str) -> None:
        driver = self._app._driver
        if isinstance(driver, TerminalDriver):
            driver.say(text)

    def _fail(self, text: str) -> None:
        self._app.notify(clean(text), severity="error", timeout=10, markup=False)


async def run_on_terminal(argv: tuple[str, ...]) -> int:
    """Run a program with this terminal to its end; its exit code. Ends it where the waiting is cancelled."""
    with _terminal_taken_back():
        process = await asyncio.create_subprocess_exec(*argv)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await _end(process)


async def _end(process: Process) -> None:
    """A shell that one types in pays no heed to SIGTERM."""
    process.send_signal(signal.SIGHUP)
    try:
        async with asyncio.timeout(PARTING_S):
            await process.wait()
    except TimeoutError:
        process.kill()


@contextmanager
def _terminal_taken_back() -> Iterator[None]:
    """Afterwards the terminal is as it was: who is killed leaves its modes to it, a shell itself in front."""
    try:
        modes = termios.tcgetattr(0)
    except (OSError, termios.error):  # it is no terminal
        yield
        return
    try:
        yield
    finally:
        stops = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # we may be in the background as yet
        try:
            with suppress(OSError, termios.error):
                os.tcsetpgrp(0, os.getpgrp())
                termios.tcsetattr(0, termios.TCSANOW, modes)
        finally:
            signal.signal(signal.SIGTTOU, signal.SIG_DFL if stops is None else stops)


async def _enter() -> None:
    """Until a line was typed; the event loop goes on."""
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(0, typed.set)
    try:
        await typed.wait()
        os.read(0, 4096)
    finally:
        loop.remove_reader(0)


@contextmanager
def _signals_left_to_the_child() -> Iterator[None]:
    """Ctrl+C while ssh connects reaches us too: it is meant for ssh. Handlers are not inherited, unlike
    ignoring."""
    numbers = (signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, _leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _leave(*_: object) -> None: ...
