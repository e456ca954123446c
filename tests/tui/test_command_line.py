"""The `:` line, the line one types in, and the menu: by keys, as an operator uses them."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from tui_fleet import Clock, FakeService

from fleettui.tui.action import Action
from fleettui.tui.actions import ACTIONS, BY_ID
from fleettui.tui.app import FleetApp
from fleettui.tui.command_line import CommandLine, command_question
from fleettui.tui.offers import Offer, actions_now, is_offered
from fleettui.tui.screens.help.screen import HelpScreen
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.menu.screen import MenuScreen
from fleettui.tui.typed import MOST_KEPT
from fleettui.tui.widgets.box import Box
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.prompt import Prompt, Question
from fleettui.view.cells import Cell, text_of
from fleettui.view.text import cell_width


def app() -> FleetApp:
    return FleetApp(FakeService(), clock=Clock())


def line_of(*ids: str) -> CommandLine:
    """A command line that knows these actions; none is run."""
    return CommandLine([Offer(BY_ID[name], object(), "") for name in ids])  # type: ignore[arg-type]


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


def prompt_of(pilot: Pilot[None]) -> Prompt:
    return pilot.app.screen.query_one(Prompt)


# Names


def test_names_of_commands_differ_and_can_be_typed() -> None:
    names = [action.name for action in ACTIONS if action.is_command]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() and " " not in name for name in names)


def test_a_command_is_found_by_its_name_or_by_a_unique_beginning() -> None:
    line = line_of("expand", "expand_all", "pause")
    offer, rest = line.read("p")
    assert offer is not None
    assert (offer.action.id, rest) == ("pause", "")
    offer, _ = line.read(":expand")
    assert offer is not None
    assert offer.action.id == "expand", "a whole name is meant, though it begins another one"
    assert line.read("exp")[0] is None
    assert line.problem("exp") == "exp can be expand, expand-all"
    assert line.problem("puase") == "no command 'puase' applies here; did you mean pause?"
    assert line.problem("pause now") == "pause takes nothing behind its name"


def test_what_stands_behind_a_name_goes_to_actions_that_take_it() -> None:
    action = Action("mark", "", "", "mark", "Mark it", takes="WORD")
    line = CommandLine([Offer(action, object(), "")])  # type: ignore[arg-type]
    offer, rest = line.read("mark  two words ")
    assert offer is not None
    assert rest == "two words"
    assert line.problem("mark two words") == ""
    assert line.complete("ma") == "mark "
    assert "WORD" in "".join(cell.text for cell in line.hint("mark"))


def test_tab_completes_as_far_as_names_agree() -> None:
    line = line_of("expand", "expand_all", "pause")
    assert line.complete("e") == "expand"
    assert line.complete("pa") == "pause"
    assert line.complete("zz") == "zz"


def test_history_keeps_each_line_once_and_not_for_ever() -> None:
    ran: list[tuple[str, str]] = []
    history = [f"old {number}" for number in range(MOST_KEPT)]
    offers = [Offer(BY_ID["pause"], object(), "")]  # type: ignore[arg-type]
    question = command_question(offers, history, lambda offer, text: ran.append((offer.action.id, text)))
    for text in ("pause", "p", "pause", "  "):
        question.on_answer(text)
    assert [name for name, _ in ran] == ["pause"] * 3
    assert history[-2:] == ["p", "pause"]
    assert len(history) == MOST_KEPT


# What applies


@pytest.mark.parametrize(
    ("action", "has_machine", "is_readonly", "expected"),
    [
        ("quit", False, True, True),
        ("something of Textual's", False, True, True),
    ],
)
def test_what_is_offered(action: str, has_machine: bool, is_readonly: bool, expected: bool) -> None:
    assert is_offered(action, has_machine=has_machine, is_readonly=is_readonly) is expected


@pytest.mark.parametrize("action", [action.id for action in ACTIONS if action.changes])
def test_with_readonly_nothing_that_changes_anything_is_offered(action: str) -> None:
    assert is_offered(action, has_machine=True, is_readonly=False)
    assert not is_offered(action, has_machine=True, is_readonly=True)


@pytest.mark.parametrize("action", [action.id for action in ACTIONS if action.needs_machine])
def test_what_is_about_a_machine_needs_one(action: str) -> None:
    assert not is_offered(action, has_machine=False, is_readonly=False)


async def test_every_offered_action_can_be_run_by_its_node() -> None:
    async with app().run_test() as pilot:
        await pilot.pause()
        for screen_keys in ((), ("enter",)):
            await press(pilot, *screen_keys)
            for offer in actions_now(pilot.app.screen):
                assert callable(getattr(offer.node, f"action_{offer.action.id}")), offer.action.id


# Typing


async def test_a_command_is_typed_and_run_and_the_keys_come_back() -> None:
    async with app().run_test() as pilot:
        await press(pilot, "colon")
        prompt = prompt_of(pilot)
        assert prompt.display
        assert not pilot.app.screen.query_one(Footer).display
        await press(pilot, "d", "e", "t", "enter")
        assert isinstance(pilot.app.screen, MachineScreen)
        await press(pilot, "escape")
        assert not prompt_of(pilot).display
        assert pilot.app.screen.query_one(Footer).display
        assert isinstance(pilot.app.focused, LineView)


async def test_what_cannot_be_run_is_said_and_stays_to_be_mended() -> None:
    async with app().run_test() as pilot:
        await press(pilot, "colon", "z", "z", "enter")
        prompt = prompt_of(pilot)
        assert prompt.question is not None
        assert prompt.input.value == "zz"
        await press(pilot, "escape")
        assert prompt.question is None
        await press(pilot, "q")
    assert pilot.app.return_code == 0


async def test_up_and_down_go_through_what_was_typed() -> None:
    heard: list[str] = []
    async with app().run_test() as pilot:
        screen = pilot.app.screen_stack[0]
        await pilot.pause()
        changes: list[str] = []
        screen.ask(  # type: ignore[attr-defined]
            Question("/", heard.append, text="now", history=("one", "two"), on_change=changes.append)
        )
        await press(pilot, "up", "up", "up")
        line = prompt_of(pilot).input
        assert line.value == "one"
        await press(pilot, "down", "down", "down")
        assert line.value == "now"
        assert changes == ["two", "one", "two", "now"]
        await press(pilot, "enter")
    assert heard == ["now"]


async def test_leaving_tells_whoever_asked() -> None:
    left: list[str] = []
    async with app().run_test() as pilot:
        await pilot.pause()
        question = Question("reason", left.append, on_cancel=lambda: left.append("left"))
        pilot.app.screen.ask(question)  # type: ignore[attr-defined]
        await press(pilot, "a", "escape")
        assert left == ["left"]
        assert isinstance(pilot.app.focused, LineView)


# Help and menus


async def test_help_over_a_screen_closes_to_it() -> None:
    async with app().run_test() as pilot:
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, HelpScreen)
        await press(pilot, "escape")
        assert pilot.app.screen is pilot.app.screen_stack[0]


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_no_sentence_of_the_help_is_cut(size: tuple[int, int]) -> None:
    async with app().run_test(size=size) as pilot:
        await press(pilot, "question_mark")
        view = pilot.app.screen.query_one(LineView)
        texts = [text_of(line.cells) for line in view.lines]
        assert max(map(cell_width, texts)) <= view.scrollable_content_region.width
        assert len(str(pilot.app.screen.query_one(Box).border_subtitle)) <= size[0] - 6
        whole = " ".join(" ".join(texts).split())
        assert BY_ID["copy_address"].description in whole
        await pilot.resize_terminal(30, 12)
        await pilot.pause()
        texts = [text_of(line.cells) for line in view.lines]
        assert max(map(cell_width, texts)) <= view.scrollable_content_region.width


async def test_no_toast_lies_on_what_is_typed_or_on_its_hint() -> None:
    async with app().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.notify("something happened " * 9, timeout=600)
        await pilot.pause()
        await press(pilot, "colon", *"re")
        lines = [strip.text for strip in pilot.app.screen._compositor.render_strips()]
        assert any("something happened" in line for line in lines)
        hint = prompt_of(pilot).query_one("#prompt-hint", CellBlock)
        assert lines[-2].rstrip() == hint.text.rstrip() != ""
        assert lines[-1].split() == [":", "re"]


async def test_a_menu_begins_at_what_holds_and_answers_what_is_taken() -> None:
    chosen: list[str] = []
    lines = [Line(key, (Cell(key),)) for key in ("one", "two", "three")]
    async with app().run_test() as pilot:
        await pilot.pause()
        dashboard = pilot.app
        assert isinstance(dashboard, FleetApp)
        dashboard.choose("Numbers", lines, "two", chosen.append)
        await pilot.pause()
        await press(pilot, "j", "enter")
        assert chosen == ["three"]
        dashboard.choose("Numbers", lines, None, chosen.append)
        await pilot.pause()
        await press(pilot, "escape")
        assert chosen == ["three"], "left without a choice"
        dashboard.choose("Numbers", lines, None, chosen.append)
        await pilot.pause()
        assert isinstance(dashboard.screen, MenuScreen)
        await pilot.click("#choices", offset=(1, 1))
        await pilot.click("#choices", offset=(1, 1), times=2)
        await pilot.pause()
        assert chosen == ["three", "two"]
