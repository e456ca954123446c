"""Maintenance on, off and undo: all or nothing, followed across processes and by a running service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fleettui.fleet.flags import FlagBook
from fleettui.fleet.maintenance import FlagError, set_maintenance, undo_maintenance
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.flags import MaintenanceChange
from fleettui.model.snapshot import FleetSnapshot, MaintenanceFlag
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

NOW = 1_000_000.0
FLEET = ("ada", "bora", "cleo")


@pytest.fixture
def book(tmp_path: Path) -> FlagBook:
    return FlagBook(str(tmp_path / "state"), "/fleet")


def put(
    book: FlagBook,
    *names: str,
    is_on: bool = True,
    now: float = NOW,
    reason: str | None = None,
    until: float | None = None,
    by: str = "mia",
) -> MaintenanceChange:
    return set_maintenance(book, FLEET, names, is_on=is_on, now=now, reason=reason, until=until, by=by)


def flags(book: FlagBook) -> dict[str, MaintenanceFlag]:
    book.refresh()
    return dict(book.maintenance)


@pytest.mark.parametrize("is_watching", [True, False])
def test_a_flag_of_another_process_is_seen_once(tmp_path: Path, book: FlagBook, is_watching: bool) -> None:
    reader = FlagBook(str(tmp_path / "state"), "/fleet", is_watching=is_watching)
    assert not reader.refresh(), "no flag is what a new book has"
    put(book, "cleo", reason="fan swap")
    assert reader.refresh()
    assert reader.maintenance == {"cleo": MaintenanceFlag("fan swap", "mia", NOW)}
    assert not reader.refresh()
    reader.close()


def test_reading_alone_creates_nothing(tmp_path: Path, book: FlagBook) -> None:
    book.refresh()
    assert (book.error, list(tmp_path.iterdir())) == (None, [])


def test_damage_is_told_and_what_was_read_stays(tmp_path: Path, book: FlagBook) -> None:
    put(book, "cleo")
    (tmp_path / "state" / "state.db").write_bytes(b"x" * 5000)
    assert not book.refresh()
    assert "damaged" in (book.error or "")
    assert set(book.maintenance) == {"cleo"}
    with pytest.raises(FlagError, match=r"no flag was changed: .*damaged") as caught:
        put(book, "bora")
    assert caught.value.kind == "state"


def test_an_unknown_name_changes_nothing(book: FlagBook) -> None:
    with pytest.raises(FlagError, match="no machine is named 'dora' in /fleet") as caught:
        put(book, "ada", "dora")
    assert (caught.value.kind, caught.value.name, flags(book)) == ("unknown_name", "dora", {})


def test_on_twice_is_one_flag_and_what_is_given_anew_replaces_what_it_had(book: FlagBook) -> None:
    first = put(book, "cleo", reason="fan swap")
    again = put(book, "cleo", now=NOW + 60, by="ada")
    assert (len(first.changed), len(again.changed)) == (1, 0)
    assert flags(book) == {"cleo": MaintenanceFlag("fan swap", "mia", NOW)}
    put(book, "cleo", now=NOW + 90, until=NOW + 3600, by="ada")
    assert flags(book) == {"cleo": MaintenanceFlag("fan swap", "ada", NOW, NOW + 3600)}, "since stays"


def test_off_ends_it_and_a_machine_without_it_stays_as_it_is(book: FlagBook) -> None:
    put(book, "cleo")
    done = put(book, "ada", "cleo", is_on=False)
    assert [(result.name, result.is_changed) for result in done.results] == [("ada", False), ("cleo", True)]
    assert flags(book) == {}


def test_off_takes_a_flagged_machine_whose_file_is_gone(book: FlagBook) -> None:
    put(book, "cleo")
    set_maintenance(book, ("ada",), ["cleo"], is_on=False, now=NOW)
    assert flags(book) == {}


def test_a_flag_stays_past_its_time(book: FlagBook) -> None:
    put(book, "cleo", until=NOW + 1)
    put(book, "ada", now=NOW + 100)
    assert set(flags(book)) == {"ada", "cleo"}


@pytest.mark.parametrize("until", [NOW, NOW - 1])
def test_an_end_that_is_not_ahead_is_refused(book: FlagBook, until: float) -> None:
    with pytest.raises(FlagError, match="lies ahead") as caught:
        put(book, "cleo", until=until)
    assert (caught.value.kind, flags(book)) == ("until", {})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  fan\n swap\t", "fan swap"),
        ("", None),
        (" \n", None),
        ("a\x1b[31mb\x07", "ab"),
        ("x" * 200, "x" * 200),
    ],
)
def test_a_reason_is_one_printable_line(book: FlagBook, given: str, kept: str | None) -> None:
    put(book, "cleo", reason=given)
    assert flags(book)["cleo"].reason == kept


def test_a_reason_is_never_cut(book: FlagBook) -> None:
    with pytest.raises(FlagError, match="201 characters; at most 200 fit"):
        put(book, "cleo", reason="x" * 201)
    assert flags(book) == {}


def test_undo_restores_each_machine_as_it_was(book: FlagBook) -> None:
    put(book, "cleo", reason="fan swap")
    change = put(book, "ada", "cleo", now=NOW + 60, reason="move", by="ada")
    undone = undo_maintenance(book, change)
    assert flags(book) == {"cleo": MaintenanceFlag("fan swap", "mia", NOW)}
    undo_maintenance(book, undone)
    assert {name: flag.reason for name, flag in flags(book).items()} == {"ada": "move", "cleo": "move"}


def test_undo_of_off_brings_back_who_and_since(book: FlagBook) -> None:
    put(book, "cleo", reason="fan swap", until=NOW + 50)
    undo_maintenance(book, put(book, "cleo", is_on=False, now=NOW + 60, by="ada"))
    assert flags(book) == {"cleo": MaintenanceFlag("fan swap", "mia", NOW, NOW + 50)}


def test_undo_never_overwrites_what_somebody_did_since(book: FlagBook) -> None:
    change = put(book, "ada", "cleo")
    put(book, "cleo", now=NOW + 5, reason="mine", by="bob")
    with pytest.raises(
        FlagError, match="cleo: bob changed the maintenance since; nothing is undone"
    ) as caught:
        undo_maintenance(book, change)
    assert caught.value.kind == "changed_meanwhile"
    assert set(flags(book)) == {"ada", "cleo"}


def test_undo_of_nothing_is_nothing(tmp_path: Path, book: FlagBook) -> None:
    put(book, "cleo", is_on=False)
    assert undo_maintenance(book, MaintenanceChange(())).results == ()


# -- a running service --------------------------------------------------------------------------------


def service_on(tmp_path: Path) -> FleetService:
    """A service over two machines that nobody answers for."""
    folder = tmp_path / "machines"
    folder.mkdir(exist_ok=True)
    for name in ("ada", "bora"):
        (folder / f"{name}.yaml").write_text(
            f"name: {name}\nrole: gpu-host\nhardware: {{}}\nmodels: []\n"
            "network: {hostname: 127.0.0.1, port: 9}\nssh: {host: 127.0.0.1, port: 9}\n"
        )
    settings = FleetSettings(str(folder), 0.5, state_dir=str(tmp_path / "state"))
    return FleetService(settings, Connector(ConnectorSettings.from_environment()))


async def until(service: FleetService, wanted: set[str]) -> FleetSnapshot:
    """The first snapshot in which exactly these machines are in maintenance."""
    return await until_so(
        service,
        lambda fleet: (
            {machine.name for machine in fleet.machines if machine.maintenance is not None} == wanted
        ),
    )


async def until_so(service: FleetService, is_so: Callable[[FleetSnapshot], bool]) -> FleetSnapshot:
    """The first snapshot of both machines of which that holds."""
    found: asyncio.Future[FleetSnapshot] = asyncio.get_running_loop().create_future()

    def look(fleet: FleetSnapshot) -> None:
        if len(fleet.machines) == 2 and is_so(fleet) and not found.done():
            found.set_result(fleet)

    end = service.subscribe(look)
    look(service.snapshot)
    try:
        return await asyncio.wait_for(found, 20.0)
    finally:
        end()


def test_a_running_service_sets_undoes_and_follows(tmp_path: Path) -> None:
    async def work() -> None:
        service = service_on(tmp_path)
        assert service.flags is not None
        await service.start()
        try:
            change = await service.flags.set_maintenance(["ada"], is_on=True, reason="fan swap", by="mia")
            fleet = await until(service, {"ada"})
            ada = fleet.find("ada")
            assert ada is not None
            assert ada.maintenance is not None
            assert (ada.maintenance.reason, ada.maintenance.by) == ("fan swap", "mia")
            await service.flags.undo(change)
            await until(service, set())
            other = FlagBook(str(tmp_path / "state"), str(tmp_path / "machines"))
            set_maintenance(other, FLEET, ["bora"], is_on=True, now=NOW, by="bob")
            await until(service, {"bora"})
            with pytest.raises(FlagError, match="no machine is named 'zoe'"):
                await service.flags.set_maintenance(["ada", "zoe"], is_on=True)
            await until(service, {"bora"})
        finally:
            await service.stop()

    asyncio.run(work())


def test_an_outage_is_expected_as_soon_as_the_flag_is_set_and_no_longer(tmp_path: Path) -> None:
    def codes(fleet: FleetSnapshot) -> tuple[str, ...]:
        ada = fleet.find("ada")
        assert ada is not None
        return tuple(reason.code for reason in ada.reasons) if ada.health == "offline" else ()

    async def work() -> None:
        service = service_on(tmp_path)
        assert service.flags is not None
        await service.start()
        try:
            await until_so(service, lambda fleet: codes(fleet) == ("ssh_connect",))
            await service.flags.set_maintenance(["ada"], is_on=True)
            await until_so(service, lambda fleet: codes(fleet) == ("ssh_connect", "expected"))
            await service.flags.set_maintenance(["ada"], is_on=False)
            await until_so(service, lambda fleet: codes(fleet) == ("ssh_connect",))
        finally:
            await service.stop()

    asyncio.run(work())


def test_a_new_service_starts_with_the_flags_and_a_removed_machine_comes_back_without(tmp_path: Path) -> None:
    async def work() -> None:
        first = service_on(tmp_path)
        other = FlagBook(str(tmp_path / "state"), str(tmp_path / "machines"))
        set_maintenance(other, FLEET, ["ada", "bora"], is_on=True, now=NOW, by="bob")
        await first.start()
        try:
            assert {m.name for m in first.snapshot.machines if m.maintenance is not None} == {"ada", "bora"}
            assert first.trust is not None
            await first.trust.remove("ada")
            await until(first, {"bora"})
        finally:
            await first.stop()
        assert set(flags(other)) == {"bora"}

    asyncio.run(work())
