"""Filter, sort, tags and the copied address of the Fleet screen: by key, mouse, palette and name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fleet_driver import Driver, dashboard
from textual import events
from textual.widgets import Input
from tui_fleet import NOW, Clock, FakeService, card, fleet, machine, rack

from fleettui.model.snapshot import MachineSnapshot
from fleettui.tui.memory import Memory
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.menu.screen import MenuScreen
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.view.sorting import IDLE_S, SORTS

pytestmark = pytest.mark.usefixtures("quick_waiting")

ALL = ["ada", "app-host", "bora", "cleo", "dora", "hopper", "kiosk", "pve52", "spark"]
ROOMY = ["bora", "hopper", "spark"]
"""More than 20 GiB of VRAM are free."""


def gpu_machine(name: str, used_gib: int) -> MachineSnapshot:
    """One card of 48 GiB."""
    return machine(name, card(0, "NVIDIA L40S", 49152, used_gib * 1024, 5))


async def run_palette(driver: Driver, words: str) -> None:
    """Choose an entry of the palette by its words."""
    await driver.press("ctrl+p")
    await driver.type(words)
    await driver.app.workers.wait_for_complete()
    await driver.press("enter")
    await driver.app.workers.wait_for_complete()
    await driver.settle()


async def run_command(driver: Driver, line: str) -> None:
    """Type a line behind the colon."""
    await driver.press("colon")
    await driver.type(line)
    await driver.press("enter")
    await driver.app.workers.wait_for_complete()
    await driver.settle()


# Filter


async def test_the_table_follows_the_filter_as_it_is_typed() -> None:
    async with dashboard() as driver:
        await driver.press("slash")
        assert isinstance(driver.app.focused, Input)
        await driver.type("free>2")
        assert driver.names == ["bora", "cleo", "hopper", "spark", "ada"] or set(driver.names) >= set(ROOMY)
        await driver.type("0")
        assert driver.names == ROOMY
        assert "filter free>20 · 3 of 9 machines" in driver.text("shown")
        assert "7/9 up" in driver.text("summary"), "the summary still speaks of the whole fleet"
        await driver.press("enter")
        assert driver.names == ROOMY
        assert driver.prompt.question is None
        assert driver.table.has_focus
        assert "Esc show all" in driver.text("footer")


async def test_on_the_way_to_a_field_the_table_is_not_emptied() -> None:
    async with dashboard() as driver:
        await driver.press("slash")
        for character in "free>":
            await driver.type(character)
            assert driver.names == ALL, "neither `fre` nor `free>` says anything yet"
        await driver.type("20")
        assert driver.names == ROOMY


async def test_a_mistake_is_named_at_its_place_and_changes_nothing() -> None:
    async with dashboard(size=(100, 24)) as driver:
        await driver.press("slash")
        await driver.type("spark ")
        assert driver.names == ["spark"]
        await driver.type("fre>2")
        assert driver.names == ["spark"]
        hint = driver.text("prompt-hint")
        assert hint.lstrip(" ▾") == "there is no field fre: did you mean free?"
        assert hint.index("▾▾▾") == len(" / ") + len("spark "), "the signs stand above the wrong word"
        await driver.press("enter")
        assert driver.prompt.question is not None, "what cannot be read is not taken"
        assert driver.names == ["spark"]


async def test_what_is_unfinished_is_a_mistake_only_with_enter() -> None:
    async with dashboard(size=(100, 24)) as driver:
        await driver.press("slash")
        await driver.type("health=heal")
        assert "healthy" in driver.text("prompt-hint")
        assert "never" not in driver.text("prompt-hint")
        await driver.press("enter")
        assert "health is never heal" in driver.text("prompt-hint")
        await driver.type("t")
        assert "never" not in driver.text("prompt-hint")


async def test_the_hint_never_comes_and_goes_while_one_types() -> None:
    async with dashboard() as driver:
        await driver.press("slash")
        heights = set()
        for character in "xy fre>2 | health=heal,off !tag:'":
            await driver.type(character)
            heights.add(driver.table.size.height)
            assert driver.text("prompt-hint").strip()
        assert len(heights) == 1


async def test_tab_completes_and_the_arrows_bring_back_what_was_typed() -> None:
    async with dashboard() as driver:
        for text in ("free>20", "tag:lab"):
            await driver.press("slash")
            await driver.press("ctrl+u")
            await driver.type(text)
            await driver.press("enter")
        await driver.press("slash")
        line = driver.prompt.input
        assert line.value == "tag:lab", "the present filter can be changed"
        await driver.press("up", "up")
        assert line.value == "free>20"
        assert driver.names == ROOMY, "what was is shown at once"
        await driver.press("down", "down", "ctrl+u")
        await driver.type("heal")
        await driver.press("tab")
        assert line.value == "health:"
        await driver.type("deg")
        await driver.press("tab")
        assert line.value == "health:degraded"
        assert driver.names == ["bora"]
        await driver.press("ctrl+u")
        await driver.type("gp")
        await driver.press("tab")
        assert line.value == "gpu", "as far as gpu:, gpufree> and gpus> agree"


async def test_escape_while_typing_brings_back_filter_cursor_and_place() -> None:
    async with dashboard(FakeService(fleet(rack(60)))) as driver:
        await driver.press("slash")
        await driver.type("gpu-")
        await driver.press("enter", "G", "k", "k")
        table = driver.table
        before = (table.cursor_machine, table.scroll_offset.y, driver.names)
        await driver.press("slash")
        await driver.type("01")
        assert driver.names == ["gpu-01"]
        assert table.cursor_machine == "gpu-01"
        await driver.press("escape")
        assert (table.cursor_machine, table.scroll_offset.y, driver.names) == before
        assert driver.screen.listing.filter.text == "gpu-"
        assert driver.screen._filters == ["gpu-"], "a line that was left is no history"


async def test_the_cursor_comes_back_to_its_machine_with_a_wider_filter() -> None:
    async with dashboard() as driver:
        await driver.press("j", "j")
        assert driver.table.cursor_machine == "bora"
        await driver.press("slash")
        await driver.type("spark")
        assert driver.table.cursor_machine == "spark"
        for _ in range(5):
            await driver.press("backspace")
        assert driver.table.cursor_machine == "bora"


async def test_escape_on_the_table_shows_all_and_keeps_the_cursor() -> None:
    async with dashboard() as driver:
        assert "Esc show all" not in driver.text("footer")
        await driver.press("escape")
        assert driver.names == ALL
        await driver.press("slash")
        await driver.type("free>20")
        await driver.press("enter", "G")
        assert driver.table.cursor_machine == "spark"
        await driver.press("escape")
        assert driver.names == ALL
        assert driver.table.cursor_machine == "spark"
        assert driver.text("shown") == ""
        assert "Esc show all" not in driver.text("footer")


async def test_where_nothing_matches_the_table_says_so() -> None:
    async with dashboard() as driver:
        await driver.press("slash")
        await driver.type("free>9999")
        await driver.press("enter")
        assert driver.names == []
        assert driver.table.cursor_machine is None
        painted = "".join(segment.text for segment in driver.table.render_line(1))
        assert "no machine matches free>9999" in painted
        assert "0 of 9 machines" in driver.text("shown")
        for key in ("j", "x", "X", "enter", "space", "T", "y", "full_stop", "G"):
            await driver.press(key)
        assert driver.app.screen is driver.screen
        await driver.press("escape")
        assert sorted(driver.names) == ALL


async def test_the_filter_by_name_mouse_and_palette() -> None:
    async with dashboard(size=(120, 30)) as driver:
        await run_command(driver, "filter free>20")
        assert driver.names == ROOMY
        await run_command(driver, "clear-filter")
        assert driver.names == ALL
        await run_command(driver, "filter fre>20")
        assert driver.prompt.question is not None, "what cannot be read is asked for again, at its place"
        assert "there is no field fre" in driver.text("prompt-hint")
        await driver.press("escape")
        assert driver.names == ALL
        at = driver.text("footer").index("/ filter")
        await driver.pilot.click("#footer", offset=(at, 0))
        await driver.type("free>20")
        await driver.press("enter")
        assert driver.names == ROOMY
        await driver.pilot.click("#shown", offset=(3, 0))
        assert driver.prompt.input.value == "free>20"
        await driver.press("escape")
        await run_palette(driver, "show all")
        assert driver.names == ALL
        await run_palette(driver, "filter")
        assert isinstance(driver.app.focused, Input)


async def test_a_machine_that_no_longer_matches_leaves_but_not_from_under_the_cursor() -> None:
    clock = Clock()
    machines = (gpu_machine("ada", 10), gpu_machine("bo", 10), gpu_machine("cy", 10))
    async with dashboard(FakeService(fleet(machines)), clock=clock) as driver:
        await run_command(driver, "filter free>20")
        await driver.go("bo")
        await driver.publish(gpu_machine("bo", 40), gpu_machine("cy", 40))
        assert driver.names == ["ada", "bo"]
        assert "1 of 3 machines" in driver.text("shown"), "the count tells the truth"
        await driver.go("ada")
        await driver.settle()
        assert driver.names == ["ada"]


# Sort


async def test_the_sort_menu_chooses_and_turns() -> None:
    async with dashboard(size=(200, 60)) as driver:
        assert "machine ▴" in driver.header
        await driver.press("o")
        menu = driver.app.screen
        assert isinstance(menu, MenuScreen)
        assert len(menu._lines) == len(SORTS)
        await driver.press("j", "j", "enter")
        await driver.settle()
        assert driver.names[:3] == ["hopper", "spark", "bora"]
        assert "VRAM free ▾" in driver.header
        await driver.press("o", "enter")
        await driver.settle()
        assert "VRAM free ▴" in driver.header
        assert driver.names.index("ada") < driver.names.index("bora") < driver.names.index("hopper")
        assert driver.names[-1] in {"app-host", "dora", "kiosk", "pve52"}, "unknown stays last"


async def test_comma_full_stop_and_capital_o_move_and_turn_the_sort() -> None:
    async with dashboard() as driver:
        await driver.press("full_stop")
        assert "health ▴" in driver.header
        assert driver.names[0] == "dora"
        await driver.press("full_stop")
        assert "VRAM free ▾" in driver.header
        await driver.press("comma", "comma")
        assert "machine ▴" in driver.header
        await driver.press("comma")
        assert "age ▾" in driver.header, "around the end, among the columns that are shown"
        await driver.press("O")
        assert "age ▴" in driver.header


async def test_a_click_on_the_header_sorts_and_turns() -> None:
    async with dashboard(size=(200, 60)) as driver:
        for title, key in (("GPU", "gpu"), ("CPU", "cpu"), ("health", "health"), ("RAM", "ram")):
            await driver.pilot.click(FleetTable, offset=(driver.header.rindex(title), 0))
            await driver.settle()
            assert driver.screen.listing.order.column == key
        await driver.pilot.click(FleetTable, offset=(driver.header.rindex("RAM"), 0))
        await driver.settle()
        assert not driver.screen.listing.order.is_descending


async def test_a_click_on_the_column_of_a_sort_that_shares_it_turns_that_sort() -> None:
    async with dashboard(size=(200, 60)) as driver:
        await run_command(driver, "sort vram used")
        assert "VRAM used ▾" in driver.header
        await driver.pilot.click(FleetTable, offset=(driver.header.index("VRAM"), 0))
        await driver.settle()
        assert "VRAM used ▴" in driver.header


async def test_the_sort_by_name_and_palette() -> None:
    async with dashboard(size=(120, 30)) as driver:
        await run_command(driver, "sort power asc")
        assert driver.screen.listing.order == ("power", False)
        await run_command(driver, "sort VRAM used, %")
        assert driver.screen.listing.order == ("vram_percent", True)
        await run_command(driver, "sort powr")
        assert driver.screen.listing.order == ("vram_percent", True)
        (notice,) = driver.app._notifications
        assert "did you mean power?" in notice.message
        await run_palette(driver, "sort right")
        assert driver.screen.listing.order.column == "gpu"
        await run_palette(driver, "reverse")
        assert not driver.screen.listing.order.is_descending
        await run_palette(driver, "sort")
        assert isinstance(driver.app.screen, MenuScreen)


async def test_a_sort_whose_column_has_no_place_is_named_above_the_table() -> None:
    async with dashboard() as driver:
        await run_command(driver, "sort power")
        assert "▾" not in driver.header
        assert "by power ▾" in driver.text("shown")


async def test_without_a_choice_the_cursor_stays_on_top_else_on_its_machine() -> None:
    machines = tuple(gpu_machine(f"m{number:02}", 47 - number) for number in range(40))
    async with dashboard(FakeService(fleet(machines)), size=(100, 20)) as driver:
        await run_command(driver, "sort vram")
        assert driver.names[0] == "m39"
        assert driver.table.cursor_machine == "m39"
        assert driver.table.scroll_offset.y == 0
        await driver.press("j", "j")
        await run_command(driver, "sort machine")
        assert driver.table.cursor_machine == "m37"


async def test_rows_do_not_move_while_one_works_and_do_when_one_rests() -> None:
    clock = Clock()
    machines = (gpu_machine("ada", 10), gpu_machine("bo", 20), gpu_machine("cy", 30))
    async with dashboard(FakeService(fleet(machines)), clock=clock) as driver:
        await run_command(driver, "sort vram")
        await driver.go("bo")
        assert driver.names == ["ada", "bo", "cy"]
        clock.now += IDLE_S - 1
        await driver.publish(gpu_machine("cy", 0), gpu_machine("aa", 5))
        assert driver.names == ["ada", "bo", "cy", "aa"], "a new one comes last, nothing above the cursor"
        clock.now += 2
        await driver.settle()
        assert driver.names == ["cy", "aa", "ada", "bo"]
        assert driver.table.cursor_machine == "bo"


async def test_who_looks_at_the_first_rows_goes_on_seeing_the_first() -> None:
    clock = Clock()
    machines = tuple(gpu_machine(f"m{number:02}", number) for number in range(40))
    async with dashboard(FakeService(fleet(machines)), size=(100, 20), clock=clock) as driver:
        await run_command(driver, "sort vram")
        assert driver.table.cursor_machine == "m00"
        clock.now += IDLE_S + 1
        await driver.publish(gpu_machine("m00", 47), gpu_machine("m39", 0))
        assert driver.names[0] == "m39"
        assert driver.table.scroll_offset.y == 0
        assert driver.table.cursor_machine == "m00", "keys still act on the machine that was chosen"
        await driver.press("k")
        assert driver.table.cursor in driver.table.visible_range()


async def test_slash_goes_back_to_the_line_that_a_click_left() -> None:
    async with dashboard() as driver:
        await driver.press("slash")
        await driver.type("sp")
        await driver.pilot.click(FleetTable, offset=(20, 1))
        assert driver.table.has_focus
        await driver.press("slash")
        await driver.type("a")
        assert driver.prompt.input.value == "spa"


@pytest.mark.parametrize("keys", [("r",), ("O", "O"), ("full_stop", "comma")])
async def test_what_one_asks_for_moves_the_rows_at_once(keys: tuple[str, ...]) -> None:
    machines = (gpu_machine("ada", 10), gpu_machine("bo", 20))
    async with dashboard(FakeService(fleet(machines))) as driver:
        await run_command(driver, "sort vram")
        await driver.publish(gpu_machine("bo", 0))
        assert driver.names == ["ada", "bo"]
        await driver.press(*keys)
        await driver.settle()
        assert driver.names == ["bo", "ada"]


async def test_the_mouse_counts_as_touching() -> None:
    clock = Clock()
    async with dashboard(clock=clock) as driver:
        assert driver.app.idle_s > IDLE_S
        move = events.MouseMove(None, 3, 3, 0, 0, 0, False, False, False, screen_x=3, screen_y=3)
        await driver.app.on_event(move)
        assert driver.app.idle_s == 0
        clock.now += 7
        assert driver.app.idle_s == 7
        clock.now = NOW - 3600
        assert driver.app.idle_s == 0, "a clock that was set back does not stop the sorting for an hour"


# Tags


async def test_space_tags_in_the_margin_and_no_column_moves() -> None:
    async with dashboard(size=(120, 30)) as driver:
        before = driver.row("ada")
        await driver.press("space")
        after = driver.row("ada")
        assert after[0] == "▌"
        assert after[1:] == before[1:]
        assert "1 tagged" in driver.text("shown")
        assert driver.screen.chosen_machines == ("ada",)
        await driver.go("bora")
        await driver.press("x", "space")
        assert driver.row("bora/gpu/0")[0] == "▌", "rows below it belong to it"
        assert driver.screen.chosen_machines == ("ada", "bora")
        await driver.press("space")
        assert driver.screen.chosen_machines == ("ada",)
        assert driver.row("bora/gpu/0")[0] == " "


async def test_without_tags_the_machine_under_the_cursor_is_chosen() -> None:
    async with dashboard() as driver:
        await driver.press("j")
        assert driver.screen.chosen_machines == ("app-host",)
        assert driver.text("shown") == ""


async def test_tags_outlast_snapshots_sort_and_filter_and_leave_with_their_machine() -> None:
    machines = rack(6)
    async with dashboard(FakeService(fleet(machines))) as driver:
        await driver.press("space")
        await driver.go("gpu-02")
        await driver.press("space")
        await driver.publish(*(replace(item, seq=item.seq + 1) for item in machines))
        await run_command(driver, "sort vram")
        assert driver.screen.chosen_machines == ("gpu-00", "gpu-02")
        await run_command(driver, "filter gpu-02")
        assert "2 tagged (1 not shown)" in driver.text("shown")
        assert driver.screen.chosen_machines == ("gpu-00", "gpu-02"), "a hidden one is tagged, and said to be"
        await driver.publish_exactly(machines[1:])
        assert driver.screen.chosen_machines == ("gpu-02",)
        await driver.publish_exactly(machines)
        assert driver.screen.chosen_machines == ("gpu-02",)


async def test_capital_t_tags_all_shown_and_then_none() -> None:
    async with dashboard() as driver:
        await driver.press("space")
        await run_command(driver, "filter free>20")
        await driver.press("T")
        assert driver.screen.chosen_machines == ("ada", *ROOMY)
        await driver.press("T")
        assert driver.screen.tags.names == frozenset()


async def test_tags_by_mouse_palette_and_name() -> None:
    async with dashboard(size=(160, 30)) as driver:
        await driver.pilot.click(FleetTable, offset=(20, driver.keys.index("bora") + 1), control=True)
        await driver.settle()
        assert driver.screen.chosen_machines == ("bora",)
        assert driver.table.cursor_machine == "bora"
        at = driver.text("footer").index("Space tag")
        await driver.pilot.click("#footer", offset=(at, 0))
        assert driver.screen.tags.names == frozenset()
        await run_palette(driver, "tag all")
        assert driver.screen.chosen_machines == tuple(ALL)
        await run_command(driver, "tag-all")
        assert driver.screen.tags.names == frozenset()
        await run_command(driver, "tag")
        assert driver.screen.chosen_machines == ("bora",)


# The address


async def test_y_copies_the_address_that_scripts_use_and_says_which() -> None:
    async with dashboard() as driver:
        await driver.press("y")
        assert driver.app.clipboard == "ada.example.net:11434"
        (notice,) = driver.app._notifications
        assert notice.message == "ada.example.net:11434"
        assert notice.title == "Copied the address of ada"


async def test_the_addresses_of_all_tagged_machines_go_together() -> None:
    async with dashboard() as driver:
        await driver.press("space", "j", "space", "y")
        assert driver.app.clipboard == "ada.example.net:11434\napp-host.example.net:11434"
        (notice,) = driver.app._notifications
        assert notice.title == "Copied 2 addresses"


async def test_the_address_by_name_palette_footer_and_on_the_machine_screen() -> None:
    async with dashboard(size=(200, 40)) as driver:
        await run_command(driver, "copy-address")
        assert driver.app.clipboard == "ada.example.net:11434"
        await driver.go("app-host")
        await run_palette(driver, "copy address")
        assert driver.app.clipboard == "app-host.example.net:11434"
        await driver.go("bora")
        at = driver.text("footer").index("y copy address")
        await driver.pilot.click("#footer", offset=(at, 0))
        assert driver.app.clipboard == "bora.example.net:11434"
        await driver.go("cleo")
        await driver.press("enter")
        assert isinstance(driver.app.screen, MachineScreen)
        await driver.press("y")
        assert driver.app.clipboard == "cleo.example.net:11434"


async def test_without_a_machine_there_is_nothing_to_copy() -> None:
    async with dashboard(FakeService(fleet(()))) as driver:
        await driver.press("y")
        assert driver.app.clipboard == ""
        titles = {command.title for command in driver.app.get_system_commands(driver.app.screen)}
        assert not {"Copy address", "Tag"} & titles


# Small terminals


@pytest.mark.parametrize("width", [80, 40, 24, 10])
async def test_narrow_terminals_keep_arrow_mark_and_count(width: int) -> None:
    async with dashboard(size=(width, 12)) as driver:
        await run_command(driver, "sort vram")
        await driver.press("space")
        assert "▾" in driver.header or width < 40, "its column is not there any more"
        assert driver.row(str(driver.table.cursor_machine))[0] == "▌"
        assert "1 tagged" in driver.text("shown")
        widths = {len("".join(cell.text for cell in row.cells)) for row in driver.table.lines}
        assert widths == {width}
        await driver.press("slash")
        await driver.type("free>20")
        await driver.press("enter")
        assert driver.names == ["hopper", "spark", "bora"]


async def test_typing_a_filter_folds_nothing() -> None:
    """The prompt takes a line from the table; whether all fit is no other question for it."""
    async with dashboard(FakeService(fleet(rack(8))), size=(120, 30)) as driver:
        assert "gpu-00/gpu/0" in driver.keys
        for height in range(30, 20, -1):
            await driver.pilot.resize_terminal(120, height)
            await driver.settle()
            is_open = "gpu-00/gpu/0" in driver.keys
            await driver.press("slash")
            await driver.settle()
            assert ("gpu-00/gpu/0" in driver.keys) == is_open, height
            await driver.press("escape")


async def test_ascii_signs() -> None:
    from fleettui.tui.port import Look

    async with dashboard(size=(100, 24), look=Look(glyphs="ascii")) as driver:
        await driver.press("space", "slash")
        await driver.type("fre>2")
        texts = [driver.text("shown"), driver.text("prompt-hint"), driver.header, driver.row("ada")]
        assert [text for text in texts if not text.isascii()] == []
        assert driver.row("ada")[0] == "+"


# Many machines


async def test_three_hundred_machines_are_worked_out_once_a_snapshot() -> None:
    service = FakeService(fleet(rack(300)))
    async with dashboard(service, size=(160, 45)) as driver:
        await run_command(driver, "filter free>1 gpu")
        await run_command(driver, "sort vram")
        listing, rows = driver.screen.listing, driver.screen._rows
        worked, built = listing.worked, rows.built
        for _ in range(5):
            driver.app.painter.paint_now()
        for key in ("j", "j", "pagedown", "G", "g"):
            await driver.press(key)
        assert listing.worked == worked, "moving about and painting again ask nothing anew"
        await driver.publish()
        assert listing.worked == worked + 1
        await driver.press("slash")
        await driver.type(" ")
        await driver.press("escape", "escape")
        assert rows.built == built, "what a filter hides is kept for its end"


async def test_another_width_is_drawn_for_what_is_seen() -> None:
    async with dashboard(FakeService(fleet(rack(300))), size=(160, 45)) as driver:
        rows = driver.screen._rows
        built = rows.built
        await driver.pilot.resize_terminal(120, 45)
        await driver.settle()
        assert rows.built - built <= 45
        for key in ("pagedown", "G", "g"):
            await driver.press(key)
            await driver.settle()
            table = driver.table
            seen = [table.lines[index] for index in table.visible_range()]
            assert {sum(len(cell.text) for cell in row.cells) for row in seen} == {120}


# Between runs


async def test_everything_chosen_is_there_again_in_the_next_run() -> None:
    memory = Memory()
    async with dashboard(memory=memory) as driver:
        await run_command(driver, "filter free>20")
        await run_command(driver, "sort gpu asc")
        await driver.press("X", "x")
        opened = driver.keys
    stored = memory.take_changes()
    assert set(stored) == {"app", "fleet"}
    async with dashboard(memory=Memory(stored)) as driver:
        assert driver.names == sorted(ROOMY, key=driver.names.index)
        assert driver.screen.listing.filter.text == "free>20"
        assert driver.screen.listing.order == ("gpu", False)
        assert driver.keys == opened
        await driver.press("slash", "ctrl+u", "up")
        assert driver.prompt.input.value == "free>20"
        await driver.press("escape", "colon", "up")
        assert driver.prompt.input.value == "sort gpu asc"


async def test_nothing_is_noted_before_the_operator_chooses() -> None:
    memory = Memory()
    async with dashboard(memory=memory) as driver:
        await driver.press("j", "j", "enter", "escape", "r", "o", "escape")
        await driver.publish()
    assert memory.take_changes() == {}


async def test_a_memory_of_nonsense_is_as_good_as_none() -> None:
    nonsense = {"fleet": {"filter": "fre>", "sort": "colour", "opened": 3, "filters": {}, "everyone": "x"},
                "app": {"screen": "moon", "commands": 7}}  # fmt: skip
    async with dashboard(memory=Memory(nonsense)) as driver:
        assert driver.names == ALL
        assert driver.screen.listing.order == ("machine", False)
        await driver.press("colon", "up", "escape", "slash", "up", "escape", "x")
        assert driver.names == ALL


async def test_the_top_screen_is_the_one_of_the_last_run() -> None:
    memory = Memory()
    async with dashboard(memory=memory) as driver:
        await driver.press("5")
        assert driver.app.current_mode == "events"
    from fleettui.tui.app import FleetApp

    app = FleetApp(FakeService(), clock=Clock(), memory=Memory(memory.take_changes()))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.current_mode == "events"
        await pilot.press("1")
        await pilot.pause()
        assert app.current_mode == "fleet"
