"""The Drain screen: what it would do, two questions, then how far it is; left and opened again, undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from action_rig import Rig, typed
from drain_desk import COPIES_AT_WORK, FakeDrainDesk, copy_at, lock_of, state_of
from tui_fleet import NOW, Clock, FakeService, card, engine, fleet, machine, model

from fleettui.cli.dashboard import tell_left_drains
from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import DrainOptions
from fleettui.model.snapshot import MachineSnapshot
from fleettui.tui.app import FleetApp
from fleettui.tui.screens.drain.screen import DrainScreen

pytestmark = pytest.mark.usefixtures("quick_waiting")

SHARED, ALONE = model("llama3.1:8b", 6.0), model("qwen2.5:14b", 9.0)


def having(name: str, *models, installed: tuple[str, ...] = ()) -> MachineSnapshot:  # type: ignore[no-untyped-def]
    """A machine with one card, on which these are loaded."""
    plain = machine(name, card(0, "NVIDIA L40S", 46068, 400, 0))
    files = (*installed, *(item.name for item in models))
    return replace(plain, engines=(engine(*models, installed=files),))


def machines() -> tuple[MachineSnapshot, ...]:
    """ada's copy can go to cleo; bora's is nowhere else."""
    return (having("ada", SHARED), having("bora", ALONE), having("cleo", installed=(SHARED.name,)))


class DrainRig(Rig):
    """The dashboard with a desk that does what a test says."""

    drains: FakeDrainDesk

    async def press(self, *keys: str) -> None:
        """What a key began is on the screen before the next one."""
        for key in keys:
            await self.pilot.press(key)
            if key in ("d", "D", "enter", "c", "u", "o", "escape"):
                await self.settle()
                await self.settle()
        await self.settle()
        await self.settle()

    @property
    def told(self) -> str:
        """The newest toast."""
        return [item.message for item in self.app._notifications][-1]

    @property
    def page(self) -> DrainScreen:
        assert isinstance(self.app.screen, DrainScreen)
        return self.app.screen

    @property
    def rows_text(self) -> str:
        return "\n".join("".join(cell.text for cell in line.cells) for line in self.page.drain_list.lines)

    def offers(self, action_id: str) -> bool:
        return self.offer(action_id) is not None


@asynccontextmanager
async def dashboard(*shown: MachineSnapshot) -> AsyncIterator[DrainRig]:
    service = FakeService(fleet(shown or machines()))
    service.drains = desk = FakeDrainDesk(service)  # type: ignore[assignment]
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(140, 40)) as pilot:
        rig = DrainRig(app, pilot, service=service)
        rig.drains = desk
        await rig.settle()
        yield rig


async def start_ada(rig: DrainRig, reason: str = "PSU swap") -> None:
    await rig.press("g", "d")
    await rig.press("enter", *typed(reason), "enter", "enter")


async def test_first_it_says_what_it_would_do_and_leaving_changes_nothing() -> None:
    async with dashboard() as rig:
        await rig.press("d")
        assert "1 copy · 5.0 GiB to load" in rig.block("title")
        assert "to cleo (1)" in rig.block("title")
        row = next(line for line in rig.rows_text.split("\n") if SHARED.name in line)
        assert row.split()[:5] == ["MOVE", SHARED.name, "cleo", "GPU", "0"]
        await rig.press("escape")
        assert rig.screen == "fleet"
        assert rig.drains.asked == []


async def test_it_asks_why_and_names_machine_and_consequence() -> None:
    async with dashboard() as rig:
        await rig.press("d", "enter")
        assert rig.asked == "why drain ada?"
        await rig.press("enter")
        assert rig.asked == "why drain ada?", "without a reason nothing begins"
        await rig.press(*typed("PSU swap until 2h"), "enter")
        assert rig.asked == "drain ada?"
        assert "takes no requests from now on; 1 copy moved" in rig.block("notes")
        await rig.press("escape")
        assert rig.drains.asked == []
        await rig.press("enter")
        assert rig.line == "PSU swap until 2h", "what was typed stands there again"
        await rig.press("enter", "enter")
        assert rig.drains.asked == [("start", ("ada",), "PSU swap", DrainOptions(), NOW + 7200)]
        assert "u undoes" in rig.told
        assert "running · 0 of 1 copy gone" in rig.block("title")
        assert '"PSU swap" mia@jump since' in rig.block("options")


async def test_a_lost_copy_wants_a_word_for_its_class_and_the_machine_typed() -> None:
    async with dashboard() as rig:
        await rig.press(*typed("/bora"), "enter", "d")
        assert "1 copy ends with no resident copy anywhere: qwen2.5:14b" in rig.block("notes")
        await rig.press("enter")
        assert rig.asked == ""
        assert rig.told.startswith("not started: your word is missing: 1 CANNOT (qwen2.5:14b); Space")
        await rig.press("space")
        assert "by your word" in rig.rows_text
        await rig.press("enter", *typed("fans"), "enter")
        assert "qwen2.5:14b resident NOWHERE" in rig.block("notes")
        await rig.press("enter")
        assert rig.drains.asked == [], "Enter alone is not enough here"
        await rig.press(*typed("bora"), "enter")
        assert rig.drains.asked[0][3].forced == ("cannot",)


async def test_a_copy_is_left_where_it_is_and_options_are_handed_on() -> None:
    async with dashboard() as rig:
        await rig.press("d", "x", "e", "f", "n")
        await rig.press()
        assert "stays where it is" in rig.rows_text
        await rig.press("enter", *typed("fans"), "enter")
        assert "llama3.1:8b stays and blocks the drain" in rig.block("notes")
        await rig.press("enter")
        assert rig.drains.asked[0][3] == DrainOptions(
            allow_pull=True, accept_degraded=True, keeps_context=True, skips=(SHARED.name,)
        )


async def test_the_preview_follows_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleettui.tui.screens.drain.preview.AGAIN_S", 0.0)
    async with dashboard() as rig:
        await rig.press("d")
        rig.service.publish(having("ada"))
        await rig.press()
        await rig.press()
        assert "nothing is loaded: drained at once" in rig.block("title")
        rig.drains.refusal = DrainError("state", "", "the state folder cannot be read")
        rig.service.publish(having("ada", SHARED))
        await rig.press()
        await rig.press()
        assert "the state folder cannot be read" in rig.rows_text


async def test_a_start_that_is_refused_is_told() -> None:
    async with dashboard() as rig:
        await rig.press("d", "enter", *typed("x"), "enter")
        rig.drains.refusal = DrainError(
            "changed_meanwhile", "ada", "ada is being drained by jo@ops since 4 s"
        )
        await rig.press("enter")
        assert rig.told == "ada is being drained by jo@ops since 4 s"
        assert rig.page.preview_names == ("ada",)


async def test_how_far_it_is_goes_on_while_nobody_looks() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", *COPIES_AT_WORK)
        await rig.press("d")
        assert "1 of 6 copies gone" in rig.block("title")
        assert "mia@jump works on it (process 4242)" in rig.block("notes")
        loading = next(line for line in rig.rows_text.split("\n") if "loading" in line)
        assert loading.split()[:6] == ["MOVE", "llama3.1:70b", "hopper", "loading", "12s", "~17"]
        assert "cudaMalloc failed: out of memory" in rig.rows_text
        await rig.press("escape")
        rig.drains.put("ada", *(replace(copy, state="gone") for copy in COPIES_AT_WORK[:4]))
        await rig.press("d")
        assert "4 of 4 copies gone" in rig.block("title")
        await rig.press("v")
        assert "POST hopper.example.net:11434/api/generate" in rig.rows_text


async def test_cancel_then_abort() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "loading"))
        await rig.press("d")
        assert not rig.offers("drain_abort")
        await rig.press("c")
        assert rig.drains.asked == [("cancel", "ada", False, False)]
        assert "the load under way still finishes; c aborts it now" in rig.block("notes")
        await rig.press("c")
        assert rig.drains.asked[1:] == [("cancel", "ada", True, False)]
        assert not rig.offers("drain_abort")
        assert not rig.offers("drain_cancel")


async def test_a_copy_in_work_is_left() -> None:
    async with dashboard() as rig:
        copy = copy_at("ada", "waiting_idle")
        rig.drains.put("ada", copy)
        await rig.press("d", "x")
        assert rig.drains.asked == [("skip", "ada", copy.copy.key)]
        assert "left where it is" in rig.rows_text


@pytest.mark.parametrize(("silent_s", "is_offered"), [(2, False), (61, True), (None, True)])
async def test_what_nobody_works_on_is_taken_over(silent_s: int | None, is_offered: bool) -> None:
    async with dashboard() as rig:
        status = rig.drains.put("ada", copy_at("ada", "pending"))
        rig.drains.show(replace(status, lock=None if silent_s is None else lock_of("ada", NOW - silent_s)))
        await rig.press("d")
        assert rig.offers("drain_take_over") == is_offered
        assert ("o takes it over" in rig.block("notes")) == is_offered
        if is_offered:
            await rig.press("o")
            assert rig.told == "this dashboard works on ada now"


async def test_blocked_says_what_is_missing_and_enter_looks_again() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "blocked"), options=DrainOptions(accept_degraded=True))
        state_of(rig.drains, "ada", "blocked", "deadline of 60 s passed")
        await rig.press("d")
        assert "deadline of 60 s passed" in rig.block("notes")
        await rig.press("enter")
        await rig.press()
        assert rig.page.preview_names == ("ada",)
        assert rig.page.options.accept_degraded, "as it was started"
        await rig.press("enter")
        assert rig.line == "PSU swap"
        await rig.press("enter", "enter")
        assert rig.drains.asked[0][:3] == ("start", ("ada",), "PSU swap")


async def test_drained_is_safe_to_reboot_and_put_back_with_undo() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "gone", is_moved=True))
        state_of(rig.drains, "ada", "drained")
        await rig.press("d")
        assert "ada is empty: safe to reboot. When it is up again, D puts it back" in rig.block("notes")
        await rig.press("escape", "D")
        assert rig.asked == "undrain ada?"
        assert "1 copy was moved away: type return to move it back" in rig.text
        await rig.press("enter")
        assert rig.drains.asked == [("undrain", "ada", False)]
        assert "ada takes requests again" in rig.told
        await rig.press("u")
        assert rig.drains.asked[1][:3] == ("start", ("ada",), "PSU swap")
        await rig.press("D", *typed("ret"), "tab", "enter")
        assert rig.drains.asked[2] == ("undrain", "ada", True)
        assert not rig.offers("undo")


async def test_refilled_by_a_client_it_is_not_safe_to_reboot_any_more() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "gone", is_moved=True))
        state_of(rig.drains, "ada", "drained")
        await rig.press("d")
        shown = rig.service.snapshot.find("ada")
        assert shown is not None
        assert shown.drain is not None
        flag = replace(shown.drain, state="blocked", text="loaded again since 14:03: llama3.1:8b")
        rig.service.publish(replace(shown, drain=flag, seq=shown.seq + 1))
        await rig.press()
        assert "safe to reboot" not in rig.block("notes")
        assert "loaded again since 14:03: llama3.1:8b" in rig.block("notes")
        assert rig.block("title").strip().startswith("Drain  ada   blocked")


async def test_a_start_is_undone_as_long_as_nothing_was_unloaded() -> None:
    async with dashboard() as rig:
        await start_ada(rig)
        await rig.press("u")
        assert rig.drains.asked[1:] == [("cancel", "ada", True, True)]
        assert rig.told.startswith("Undone: ada takes requests again")
        await rig.press("escape")
        await start_ada(rig)
        rig.drains.put("ada", copy_at("ada", "gone", SHARED.name, unloads=1))
        await rig.press("u")
        assert "not undone, llama3.1:8b is unloaded there already" in rig.told
        assert rig.drains.known


async def test_tagged_machines_are_emptied_together() -> None:
    async with dashboard() as rig:
        await rig.press("g", "space", "G", "space", "d")
        assert rig.block("title").startswith(" Drain  ada, cleo   ")
        assert "ada: 1 copy" in rig.rows_text
        assert "cleo: nothing is loaded" in rig.rows_text
        await rig.press("space")
        await rig.press("enter", *typed("kernel"), "enter")
        assert rig.asked == "drain ada cleo?"
        await rig.press(*typed("ada cleo"), "enter")
        assert rig.drains.asked[0][1] == ("ada", "cleo")
        assert "ada: running" in rig.rows_text


async def test_by_name_with_reason_and_end() -> None:
    async with dashboard() as rig:
        await rig.press(*typed(":drain PSU swap until 2h"), "enter")
        await rig.press()
        assert rig.screen == "drain"
        await rig.press("enter")
        assert rig.asked == "drain ada?", "the reason is given"
        await rig.press("enter")
        assert rig.drains.asked[0][2:] == ("PSU swap", DrainOptions(), NOW + 7200)
        await rig.press(*typed(":undrain cleo return"), "enter")
        assert (len(rig.drains.asked), "cleo is not drained" in rig.told) == (1, True)
        await rig.press(*typed(":undrain return"), "enter")
        assert rig.drains.asked[1] == ("undrain", "ada", True)
        await rig.press("escape", *typed(":drain fans until never"), "enter")
        assert rig.screen == "fleet"
        await rig.press(*typed(":drain cleo fans until 2h"), "enter")
        await rig.press()
        assert rig.screen == "drain"
        await rig.press("enter")
        assert rig.asked == "drain cleo?", "it is named, wherever the cursor is"


async def test_the_page_of_the_machine_tells_its_drain() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "waiting_idle", text="2 requests in work"))
        await rig.press("enter")
        await rig.press()
        text = rig.text
        assert 'draining (running) "PSU swap" by mia@jump since' in text
        assert "waits until idle 12s" in text
        assert "llama3.1:8b  6.0 GiB" in text, "what still runs there"
        assert "verified llama3.1:70b → hopper" in text
        rig.service.publish(replace(having("ada"), drain=rig.service.snapshot.find("ada").drain))  # type: ignore[union-attr]
        await rig.press()
        assert "nothing: no copy is loaded, no other process is on a GPU" in rig.text


async def test_without_a_state_folder_it_says_so() -> None:
    async with dashboard() as rig:
        rig.service.drains = None
        await rig.press("d")
        assert rig.screen == "fleet"
        assert "Drains are kept in the state folder" in rig.told


async def test_what_is_moved_back_is_seen_and_told() -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "gone", SHARED.name, "cleo", is_moved=True))
        state_of(rig.drains, "ada", "drained")
        await rig.press("d", "D", *typed("return"), "enter")
        assert "moved back to ada" in rig.rows_text
        assert "loading" in rig.rows_text
        done = replace(rig.drains.back["ada"][0], state="switched", text="ada serves it again")
        rig.drains.back["ada"] = (done,)
        rig.app.drains.watch.note_news()  # type: ignore[attr-defined]
        await rig.press()
        assert "moved back to ada" not in rig.rows_text
        assert rig.told == "ada: moved back: llama3.1:8b"


async def test_who_leaves_hears_of_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    async with dashboard() as rig:
        rig.drains.put("ada", copy_at("ada", "loading"))
        rig.drains.put("bora")
        state_of(rig.drains, "bora", "drained")
        left = rig.service.snapshot
    tell_left_drains(left)
    said = capsys.readouterr().err
    assert "not empty yet: ada; it takes no requests, nothing is lost" in said
    assert "fleettui drain status ada --follow" in said
