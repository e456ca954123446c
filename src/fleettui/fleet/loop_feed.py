"""One loop channel of a machine: the client asks with one line, the machine answers with one frame."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from fleettui.fleet.poll_time import PollTime
from fleettui.fleet.silence import SilenceWatch
from fleettui.net.errors import ENDED_WITH_LINK
from fleettui.net.link import Link, LoopChannel
from fleettui.probes.frames import Frame, FrameReader, request_line
from fleettui.probes.loops import LoopKind, loop_command


class LoopFeed:
    """Asks one `sh` loop and hands its frames on; never a second question before the answer."""

    def __init__(
        self,
        kind: LoopKind,
        on_frame: Callable[[Frame], None],
        on_end: Callable[[str], None],
        watch: SilenceWatch | None = None,
    ) -> None:
        self.kind: LoopKind = kind
        self._watch = watch
        self._on_frame = on_frame
        self._on_end = on_end
        self._channel: LoopChannel | None = None
        self._reader: FrameReader | None = None
        self._generation = 0
        self._seq = 0
        self.time = PollTime()
        self.asked: tuple[str, ...] = ()
        """Sections of the outstanding question; empty when none is."""
        self.has_answered = False
        self._has_begun = False
        """The machine took the command."""

    @property
    def is_open(self) -> bool:
        return self._channel is not None and self._channel.is_open

    @property
    def noise(self) -> str:
        """What the machine said outside frames: banners, a restricted account's refusal."""
        return self._reader.noise if self._reader is not None else ""

    def describe_end(self, text: str) -> str:
        """Why the loop ended; what the machine said instead of an answer tells more than an exit code."""
        if self.has_answered or not self._has_begun or text.startswith(ENDED_WITH_LINK):
            return text
        if self.noise:
            return f"the account is restricted or its shell fails ({text}): remote said '{self.noise}'"
        return f"the login shell gave no answer ({text}): check its start files, or a forced command"

    async def open(self, link: Link) -> None:
        """Start the loop on an open link. Raises LinkError with stage `session`."""
        token = secrets.token_hex(8)
        self._generation += 1
        generation = self._generation
        self._reader = FrameReader(token)
        self.has_answered = self._has_begun = False
        self._note_over()
        self._channel = await link.open_loop(
            loop_command(self.kind, token),
            lambda data: self._receive(generation, data),
            lambda text: self._ended(generation, text),
        )
        self._has_begun = True

    def ask(self, sections: Sequence[str]) -> bool:
        """Send one question; False while the last one is unanswered or the loop is closed."""
        if self.asked or not sections or self._channel is None or not self._channel.is_open:
            return False
        self._seq += 1
        self.asked = tuple(sections)
        self.time.ask()
        if self._watch is not None:
            self._watch.ask()
        self._channel.write(request_line(self._seq, sections))
        return True

    def close(self) -> None:
        """End the loop; the shell ends on EOF."""
        self._generation += 1
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self._note_over()

    def _note_over(self) -> None:
        """Nothing is outstanding, and nothing was heard."""
        self.asked = ()
        self.time.give_up()
        if self._watch is not None:
            self._watch.stop()

    def _receive(self, generation: int, data: bytes) -> None:
        if generation != self._generation or self._reader is None:
            return
        if self._watch is not None:
            self._watch.hear()
        for frame in self._reader.receive_data(data):
            if frame.seq != self._seq:
                continue
            self.asked, self.has_answered = (), True
            self.time.answer()
            if self._watch is not None:
                self._watch.answer()
            self._on_frame(frame)

    def _ended(self, generation: int, text: str) -> None:
        if generation != self._generation:
            return
        self._channel = None
        self._has_begun = True  # an end may be told before `open` goes on
        self._note_over()
        self._on_end(text)
