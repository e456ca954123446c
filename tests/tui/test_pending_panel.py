"""The Pending panel: who waits, what is shown to decide by, and that exactly what was seen is decided."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, card, fleet, machine

from fleettui.fleet.trust_words import ShownKey, TrustError, TrustResult
from fleettui.model.approval import COMPARE_LINE
from fleettui.model.snapshot import HostKeyOffer, LinkStatus, MachineSnapshot
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.pending.screen import PendingScreen
from fleettui.tui.widgets.box import Box
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.prompt import Prompt
from fleettui.view.cells import text_of

OLD = "SHA256:Lq9sT5bXw1nV7cZ3pR8kM2dF6gH4jQ0yA1eU5iO9tBw"
NEW = "SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo"
OTHER = "SHA256:Ab3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo"


def waiting(
    name: str, fingerprint: str = NEW, *, expected: tuple[str, ...] = (), expires_in: float | None = 780
) -> MachineSnapshot:
    """A machine whose key nobody approved; with `expected` it had another one."""
    ends_at = None if expected or expires_in is None else NOW + expires_in
    offer = HostKeyOffer("ED25519", fingerprint, "KXO6-CY5H", expected, ends_at)
    link = LinkStatus(
        "failed", "host key", "unknown host key", NOW - 90, None, f"{name}.example.net:22", offer
    )
    trust = "key_changed" if expected else "pending"
    return MachineSnapshot(machine=machine(name).machine, trust=trust, link=link)  # type: ignore[arg-type]


ADA = machine("ada", card(0, "Tesla T4", 15360, 2, 0))
GINA = waiting("gina", expected=(OLD,))
KIOSK = waiting("kiosk")
LAB = waiting("lab-7", OTHER, expires_in=-200)
REJECTED = replace(
    waiting("old"),
    trust="rejected",
    link=replace(KIOSK.link, error="old:22: host key was rejected by mia on 2026-11-28, nothing is asked"),
)


class FakeTrust:
    """Decides when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: TrustError | None = None
        self.shows = HostKeyOffer("ED25519", NEW, "KXO6-CY5H")
        self.route: tuple[str, ...] = ()

    def route_to(self, name: str) -> tuple[str, ...]:
        return self.route

    async def _answer(self, *asked: str) -> None:
        self.asked.append(asked)
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error

    async def approve(self, name: str, fingerprint: str | None = None) -> TrustResult:
        await self._answer("approve", name, str(fingerprint))
        return TrustResult(name, "x:22", "approved", f"{name} is approved with ED25519 {fingerprint}")

    async def reject(self, name: str) -> TrustResult:
        await self._answer("reject", name)
        return TrustResult(name, "x:22", "rejected", f"{name} is rejected: nothing is asked of it")

    async def read_key(self, name: str) -> ShownKey:
        await self._answer("read", name)
        return ShownKey(machine(name).machine, "x:22", self.shows, None)


class Panel:
    """The dashboard under test, with words for what one looks at."""

    def __init__(self, app: FleetApp, service: FakeService, trust: FakeTrust, pilot: Pilot[None]) -> None:
        self.app, self.service, self.trust, self.pilot = app, service, trust, pilot

    @property
    def screen(self) -> PendingScreen:
        assert isinstance(self.app.screen, PendingScreen)
        return self.app.screen

    @property
    def names(self) -> list[str]:
        return [line.key for line in self.screen.waiting.lines]

    @property
    def page(self) -> str:
        """The page as one text, its lines joined where they were wrapped."""
        return " ".join(text_of(line.cells) for line in self.screen.query_one("#key", LineView).lines)

    def text(self, widget_id: str) -> str:
        return " ".join(self.app.screen.query_one(f"#{widget_id}", CellBlock).text.split())

    def go_to(self, name: str) -> None:
        """The cursor of the Fleet screen goes to a machine."""
        assert self.app.screen.query_one(FleetTable).move_to(name)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.service.publish(*machines)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.pilot.pause()


@asynccontextmanager
async def dashboard(
    *machines: MachineSnapshot, size: tuple[int, int] = (80, 40), look: Look | None = None
) -> AsyncIterator[Panel]:
    service, trust = FakeService(fleet(machines or (ADA, GINA, KIOSK, LAB, REJECTED))), FakeTrust()
    service.trust = trust  # type: ignore[assignment]
    app = FleetApp(service, look, clock=Clock())
    async with app.run_test(size=size) as pilot:
        panel = Panel(app, service, trust, pilot)
        await panel.settle()
        yield panel


# Ways in


async def test_the_badge_names_its_key_and_a_click_on_it_opens_the_panel() -> None:
    async with dashboard() as panel:
        footer = panel.app.screen.query_one("#footer", CellBlock).text
        assert footer.endswith("1 key changed  2 pending  a")
        await panel.pilot.click("#footer", offset=(footer.index("2 pending"), 0))
        await panel.settle()
        assert panel.names == ["gina", "kiosk", "lab-7", "old"]
        assert panel.screen.query_one(Box).border_title == "3 machines wait for your decision"


@pytest.mark.parametrize("way", ["a", "enter", "palette", "command", "machine"])
async def test_every_way_opens_it_at_the_machine_one_is_at(way: str) -> None:
    async with dashboard() as panel:
        panel.go_to("kiosk")
        if way == "palette":
            await panel.press("ctrl+p", *"pending")
            await panel.app.workers.wait_for_complete()
            await panel.press("enter")
        elif way == "command":
            await panel.press("colon", *"pending", "enter")
        elif way == "machine":
            panel.app.open_machine("kiosk")
            await panel.settle()
            assert isinstance(panel.app.screen, MachineScreen)
            await panel.press("a")
        else:
            await panel.press(way)
        await panel.settle()
        assert panel.screen.machine is not None
        assert panel.screen.machine.name == "kiosk"
        await panel.press("escape")
        assert isinstance(panel.app.screen, MachineScreen if way == "machine" else FleetScreen)


async def test_enter_on_an_approved_or_rejected_machine_still_shows_the_machine() -> None:
    async with dashboard() as panel:
        await panel.press("enter")
        assert isinstance(panel.app.screen, MachineScreen)
        await panel.press("escape", "G", "enter")
        assert isinstance(panel.app.screen, MachineScreen)


async def test_the_command_takes_a_machine() -> None:
    async with dashboard() as panel:
        await panel.press("colon", *"pending lab-7", "enter")
        assert panel.screen.machine is not None
        assert panel.screen.machine.name == "lab-7"


async def test_nobody_waits() -> None:
    async with dashboard(ADA) as panel:
        assert "pending" not in panel.text("footer")
        await panel.press("a")
        assert panel.names == []
        assert panel.page.startswith("No machine waits for your decision.")
        await panel.press("a", "enter", "n", "r")
        assert panel.trust.asked == []
        assert not panel.screen.check_action("copy_line", ()), "there is nothing to compare"


# What is shown


async def test_the_page_has_all_to_decide_by() -> None:
    async with dashboard() as panel:
        panel.trust.route = ("bastion.example.net:22", "192.0.2.60:2222")
        panel.go_to("kiosk")
        await panel.press("a")
        page = panel.page
        for part in ("kiosk", "192.0.2.60:2222", "ED25519", NEW, "KXO6-CY5H", "First seen 2m ago",
                     "expires in 13m", "The full fingerprint decides", "bastion.example.net:22"):  # fmt: skip
            assert part in page
        assert COMPARE_LINE.replace(" ", "") in page.replace(" ", "")
        await panel.press("j")
        assert "nobody decided within 15 min" in panel.page
        await panel.press("j")
        assert "was rejected by mia" in panel.page


@pytest.mark.parametrize("width", [80, 160])
async def test_old_and_new_key_stand_beside_each_other(width: int) -> None:
    async with dashboard(size=(width, 40)) as panel:
        await panel.press("a")
        lines = [text_of(line.cells) for line in panel.screen.query_one("#key", LineView).lines]
        old = next(line for line in lines if OLD in line)
        new = next(line for line in lines if NEW in line)
        assert (old == new) == (width == 160), "side by side where there is room, else one above the other"
        if width == 80:
            assert old.index(OLD) == new.index(NEW)
        cells = [cell for line in panel.screen.query_one("#key", LineView).lines for cell in line.cells]
        assert {cell.tone for cell in cells if NEW in cell.text} == {"bad"}
        assert {cell.tone for cell in cells if OLD in cell.text} == {"plain"}
        assert "somebody sits between you and it" in panel.page


async def test_y_copies_the_line_whole() -> None:
    async with dashboard() as panel:
        await panel.press("a", "y")
        assert panel.app.clipboard == COMPARE_LINE
        assert "on the clipboard" in panel.text("said")


# Decisions


async def test_a_then_enter_approves_the_key_and_it_says_what_came_out() -> None:
    async with dashboard() as panel:
        panel.go_to("kiosk")
        await panel.press("a", "a")
        assert NEW in panel.text("said")
        assert panel.trust.asked == [], "a question is no decision"
        panel.trust.may_answer.clear()
        await panel.press("enter")
        assert panel.trust.asked == [("approve", "kiosk", NEW)]
        assert "reading its key again" in panel.text("said")
        await panel.press("a", "n", "r", "enter")
        assert len(panel.trust.asked) == 1, "one decision about a machine at a time"
        panel.trust.may_answer.set()
        await panel.app.workers.wait_for_complete()
        await panel.publish(replace(ADA, machine=KIOSK.machine))
        assert "kiosk is approved with ED25519" in panel.text("said")
        assert panel.names == ["gina", "lab-7", "old"]
        assert "kiosk" in panel.service.polled


async def test_clicks_in_the_footer_decide_too() -> None:
    async with dashboard(KIOSK) as panel:
        await panel.press("enter")
        for words in ("a approve", "Enter yes"):
            footer = panel.app.screen.query_one("#footer", CellBlock).text
            await panel.pilot.click("#footer", offset=(footer.index(words), 0))
            await panel.settle()
        assert panel.trust.asked == [("approve", "kiosk", NEW)]


async def test_the_palette_decides_too() -> None:
    async with dashboard(KIOSK) as panel:
        await panel.press("a")
        titles = {command.title for command in panel.app.get_system_commands(panel.app.screen)}
        assert {"Approve", "Not this one", "Copy the line", "Read the key again"} <= titles
        await panel.press("ctrl+p", *"approve")
        await panel.app.workers.wait_for_complete()
        await panel.press("enter", "enter")
        assert panel.trust.asked == [("approve", "kiosk", NEW)]


async def test_commands_decide_too() -> None:
    async with dashboard(KIOSK) as panel:
        await panel.press("a", "colon", *"approve", "enter", "enter")
        assert panel.trust.asked == [("approve", "kiosk", NEW)]
        await panel.press("colon", *"read-key", "enter")
        assert panel.trust.asked[1:] == [("read", "kiosk")]


async def test_escape_takes_the_question_back_and_then_closes() -> None:
    async with dashboard(KIOSK) as panel:
        await panel.press("a", "a", "escape", "enter")
        assert panel.trust.asked == []
        assert isinstance(panel.app.screen, PendingScreen)
        await panel.press("escape")
        assert isinstance(panel.app.screen, FleetScreen)


async def test_moving_on_takes_the_question_back() -> None:
    async with dashboard() as panel:
        await panel.press("a", "j", "a", "j", "enter")
        assert panel.trust.asked == []


async def test_a_changed_key_is_approved_only_by_its_machines_name() -> None:
    async with dashboard() as panel:
        await panel.press("a", "a", "enter", "enter")
        assert panel.app.screen.query_one(Prompt).question is not None
        await panel.press(*"gin", "enter")
        assert panel.trust.asked == []
        await panel.press("a", "enter")
        assert panel.trust.asked == [("approve", "gina", NEW)]
        assert panel.app.screen.query_one(Prompt).question is None


async def test_escape_leaves_a_changed_key_as_it_is() -> None:
    async with dashboard() as panel:
        await panel.press("a", "a", *"gina", "escape", "enter")
        assert panel.trust.asked == []
        assert isinstance(panel.app.screen, PendingScreen)


async def test_what_was_on_the_screen_is_approved_whatever_arrives_meanwhile() -> None:
    async with dashboard(KIOSK) as panel:
        await panel.press("a", "a")
        panel.service.publish(waiting("kiosk", OTHER))  # arrived, not painted
        panel.screen.action_confirm()
        await panel.settle()
        assert panel.trust.asked == [("approve", "kiosk", NEW)]


@pytest.mark.parametrize("expected", [(), (OLD,)])
async def test_a_question_about_a_key_that_is_shown_no_more_is_withdrawn(expected: tuple[str, ...]) -> None:
    async with dashboard(waiting("kiosk", expected=expected)) as panel:
        await panel.press("a", "a")
        await panel.publish(waiting("kiosk", OTHER, expected=expected))
        assert "another key now" in panel.text("said")
        await panel.press("enter")
        assert panel.trust.asked == []
        assert panel.app.screen.query_one(Prompt).question is None
        await panel.press("a", *(() if not expected else "kiosk"), "enter")
        assert panel.trust.asked == [("approve", "kiosk", OTHER)]


async def test_not_this_one_says_what_it_means_and_how_it_is_taken_back() -> None:
    async with dashboard(ADA, KIOSK) as panel:
        await panel.press("a", "n")
        assert "Nothing is asked of it any more" in panel.text("said")
        assert "approved after all" in panel.text("said")
        await panel.press("enter")
        assert panel.trust.asked == [("reject", "kiosk")]
        await panel.publish(replace(KIOSK, trust="rejected"))
        assert panel.screen.query_one(Box).border_title == "Nothing waits"
        assert "is rejected" in panel.text("said")
        await panel.press("n")
        assert panel.text("said") != "", "it is rejected already: nothing to ask"
        await panel.press("a")
        assert "It was rejected before." in panel.text("said")
        await panel.press("enter")
        assert panel.trust.asked[1:] == [("approve", "kiosk", NEW)]


async def test_why_nothing_was_decided_is_told_in_place() -> None:
    async with dashboard(KIOSK) as panel:
        panel.trust.error = TrustError(
            "other_key", "kiosk", f"kiosk: x:22 shows another key: ED25519 {OTHER}"
        )
        await panel.press("a", "a", "enter")
        assert f"shows another key: ED25519 {OTHER}" in panel.text("said")
        assert panel.names == ["kiosk"]


async def test_r_reads_the_key_again() -> None:
    async with dashboard(LAB) as panel:
        await panel.press("a", "r")
        assert panel.trust.asked == [("read", "lab-7")]
        assert f"shows another key now: ED25519 {NEW}" in panel.text("said")
        panel.trust.shows = replace(panel.trust.shows, fingerprint=OTHER)
        await panel.press("r")
        assert f"was asked just now and shows ED25519 {OTHER}" in panel.text("said")


async def test_a_key_that_was_never_read_can_be_read_and_approved() -> None:
    unread = replace(REJECTED, link=replace(REJECTED.link, offer=None))
    async with dashboard(unread) as panel:
        await panel.press("a")
        assert "not read yet" in panel.page
        await panel.press("a", "enter")
        assert panel.trust.asked == []
        await panel.press("r", "a", "enter")
        assert panel.trust.asked == [("read", "old"), ("approve", "old", NEW)]


async def test_after_the_last_one_it_says_so() -> None:
    async with dashboard(ADA, KIOSK) as panel:
        await panel.press("a", "a", "enter")
        await panel.publish(replace(ADA, machine=KIOSK.machine))
        assert panel.page.startswith("No machine waits for your decision.")
        assert "kiosk is approved" in panel.text("said")


async def test_what_came_out_is_told_where_the_panel_was_left() -> None:
    async with dashboard(KIOSK) as panel:
        panel.trust.may_answer.clear()
        await panel.press("a", "a", "enter", "escape")
        assert isinstance(panel.app.screen, FleetScreen)
        panel.trust.may_answer.set()
        await panel.app.workers.wait_for_complete()
        await panel.settle()
        assert [item.message for item in panel.app._notifications] == [
            f"kiosk is approved with ED25519 {NEW}"
        ]


async def test_readonly_shows_and_decides_nothing() -> None:
    async with dashboard(KIOSK, look=Look(is_readonly=True)) as panel:
        await panel.press("a")
        assert NEW in panel.page
        assert panel.text("footer") == "y copy the line : command"
        assert "read only" in panel.text("said")
        await panel.press("a", "enter", "n", "enter", "r")
        assert panel.trust.asked == []


async def test_hostile_words_stay_on_their_line() -> None:
    bad = waiting("kiosk")
    offer = (
        replace(bad.link.offer, key_type="\x1b[2JED", fingerprint="SHA256:\x07x") if bad.link.offer else None
    )
    bad = replace(bad, link=replace(bad.link, offer=offer, address="\x1b]0;x\x07:22"))
    async with dashboard(bad) as panel:
        panel.trust.error = TrustError("no_contact", "kiosk", "\x1b[31mred")
        await panel.press("a", "a", "enter")
        shown = panel.page + panel.text("said") + text_of(panel.screen.waiting.lines[0].cells)
        assert shown.isprintable()


async def test_no_size_breaks_a_question() -> None:
    async with dashboard(size=(1, 1)) as panel:
        await panel.press("a", "a", "escape", "j", "a", "j", "escape")
        await panel.pilot.resize_terminal(80, 24)
        await panel.settle()


async def test_ascii_signs_reach_all_of_it() -> None:
    async with dashboard(look=Look(glyphs="ascii")) as panel:
        await panel.press("a")
        texts = [panel.page, panel.text("rule"), panel.text("footer")]
        texts += [text_of(line.cells) for line in panel.screen.waiting.lines]
        assert [text for text in texts if not text.isascii()] == []


async def test_the_panel_lives_while_it_is_open() -> None:
    async with dashboard(KIOSK) as panel:
        await panel.press("a")
        assert isinstance(panel.app.clock, Clock)
        panel.app.clock.now += 240
        await panel.settle()
        assert "expires in 9m" in panel.page
        await panel.publish(GINA)
        assert panel.names == ["gina", "kiosk"]
        assert panel.screen.machine is not None
        assert panel.screen.machine.name == "kiosk", "who comes does not move the cursor"
