"""The GPU source of a Windows machine: nvidia-smi itself, one command a poll, its answers as frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from fleettui.fleet.poll_time import PollTime
from fleettui.net.errors import LinkError, SessionRefused
from fleettui.net.link import CommandAnswer, Link
from fleettui.probes.frames import Frame, Section
from fleettui.probes.loops_gpu import TOOL_LIMIT_S
from fleettui.probes.windows import (
    NVIDIA_SMI_PLACES,
    TASK_LIST,
    clean_output,
    is_answer,
    names_running,
    nvidia_smi_command,
)

KILLED_EXITS = {"TERM": 143}
HUNG = Section(75, b"hung 0 ?")
TIMED_OUT = Section(124, b"")
NOT_FOUND = Section(127, b"")
NOT_ASKED = Section(1, b"")


class WindowsGpuFeed:
    """Asks one Windows machine; never a second command before the last one ended, however long that takes."""

    kind = "gpu"
    noise = ""

    def __init__(
        self, on_frame: Callable[[Frame], None], limit_s: float = TOOL_LIMIT_S, *, may_hang: bool = False
    ) -> None:
        self._on_frame = on_frame
        self._limit_s = limit_s
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self.place: str | None = None
        """Where nvidia-smi answered."""
        self._may_hang = may_hang
        """The last one did not tell its end: it may still run, also on the next connection."""
        self._seq = 0
        self.time = PollTime()
        self.asked: tuple[str, ...] = ()
        self.has_answered = False

    @property
    def is_open(self) -> bool:
        return self._link is not None

    def describe_end(self, text: str) -> str:
        """Why it ended."""
        return text

    async def open(self, link: Link) -> None:
        """Nothing is started before the first question."""
        self._link = link
        self.has_answered = False

    def ask(self, sections: Sequence[str]) -> bool:
        """Run what the sections need, one after the other; False while the last commands have not ended."""
        if self.asked or not sections or self._link is None:
            return False
        self.asked = tuple(sections)
        self.time.ask()
        self._task = asyncio.create_task(self._answer(self._link, self.asked))
        return True

    def close(self) -> None:
        """The connection ends, and its channels with it."""
        self._link = None
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.asked = ()
        self.time.give_up()

    async def _answer(self, link: Link, sections: tuple[str, ...]) -> None:
        try:
            answers: dict[str, Section] = {}
            for section in sections:
                if section.startswith("amd"):
                    continue
                answer = await self._run_section(link, section)
                if answer is not None:
                    answers[section.partition(":")[0]] = answer
            if answers:
                self._give(answers)
        except LinkError:
            pass  # no session: the machine is busy, or the connection just ended, which the link tells
        finally:
            if asyncio.current_task() is self._task:
                self.asked = ()

    def _give(self, answers: dict[str, Section]) -> None:
        self._seq += 1
        self.has_answered = True
        self.time.answer()
        self._on_frame(Frame(self._seq, answers))

    async def _run_section(self, link: Link, section: str) -> Section | None:
        """The answer to one section; None: the channel ended without an exit status, which is no answer."""
        if nvidia_smi_command("", section) is None:
            return NOT_ASKED
        if self._may_hang and await self._still_runs(link):
            return HUNG
        if self.place is None and section.partition(":")[0] != "gpu":
            return NOT_FOUND  # only a row or a sentence of a query tells that it is there
        for place in NVIDIA_SMI_PLACES if self.place is None else (self.place,):
            command = nvidia_smi_command(place, section)
            answer = await self._run(link, command or "", section)
            if answer is None:
                return None
            found = _to_section(answer)
            if self.place is not None:
                return found
            if is_answer(section, found.payload, found.exit_code) or answer.signal is not None:
                self.place = place
                return found
        return NOT_FOUND

    async def _run(self, link: Link, command: str, section: str) -> CommandAnswer | None:
        """Run a command; past its limit that is told, and still it is waited for."""
        running = asyncio.create_task(link.run_command(command))
        self._may_hang = True
        try:
            done, _ = await asyncio.wait({running}, timeout=self._limit_s)
            if not done:
                # Whatever it was asked, the cards cannot be asked now.
                self._give({section.partition(":")[0]: TIMED_OUT, "gpu": TIMED_OUT})
                await asyncio.wait({running})
            answer = running.result()
            self._may_hang = answer is None
            return answer if done else None  # of another time
        except SessionRefused:
            self._may_hang = False
            raise
        finally:
            if not running.done():
                running.cancel()

    async def _still_runs(self, link: Link) -> bool:
        listed = await link.run_command(TASK_LIST)
        self._may_hang = listed is None or names_running(listed.stdout)
        return self._may_hang


def _to_section(answer: CommandAnswer) -> Section:
    if answer.signal is not None:
        return Section(KILLED_EXITS.get(answer.signal, 137), b"")
    # Exit codes of Windows have 32 bits; the loops' have 8, and 9009 is none of nvidia-smi's.
    return Section(min(max(answer.exit_code, 0), 255), clean_output(answer.stdout, answer.stderr))
