"""The book of decisions: followed across processes, changed with care; adding restores what it changed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fleettui.config.machine_folder import load_machines
from fleettui.fleet.machine_adding import AddRequest, add_machines
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_desk import TrustDesk, _pin_over
from fleettui.fleet.trust_words import TrustError
from fleettui.model.trust import TrustDecision
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

KEY = ("ada", "ada.lan:22")
K1, K2 = "SHA256:" + "a" * 43, "SHA256:" + "b" * 43


def pin(fingerprint: str = K1, at: float = 1.0, by: str = "mia@desk") -> TrustDecision:
    return TrustDecision(*KEY, "pinned", "ED25519", fingerprint, at, by, "approve")


def find(book: TrustBook) -> TrustDecision | None:
    assert book.table is not None
    return book.table.find(*KEY)


@pytest.mark.parametrize("is_watching", [True, False])
def test_a_decision_of_another_process_is_seen_once(tmp_path: Path, is_watching: bool) -> None:
    reader = TrustBook(str(tmp_path / "state"), "/fleet", is_watching=is_watching)
    assert reader.refresh(), "no decision is an answer too"
    assert not reader.refresh()
    writer = TrustBook(str(tmp_path / "state"), "/fleet")
    writer.change({KEY: lambda _: pin()})
    assert reader.refresh()
    assert find(reader) == pin()
    assert not reader.refresh()
    reader.close()


def test_reading_alone_creates_nothing(tmp_path: Path) -> None:
    book = TrustBook(str(tmp_path / "state"), "/fleet")
    book.refresh()
    assert (book.error, list(tmp_path.iterdir())) == (None, [])


def test_damage_is_told_and_what_was_read_stays(tmp_path: Path) -> None:
    book = TrustBook(str(tmp_path), "/fleet")
    book.change({KEY: lambda _: pin()})
    book.refresh()
    (tmp_path / "state.db").write_bytes(b"x" * 5000)
    assert not book.refresh()
    assert "damaged" in (book.error or "")
    assert find(book) == pin()
    fresh = TrustBook(str(tmp_path), "/fleet")
    fresh.refresh()
    assert fresh.table is None, "nobody can tell who was rejected"
    (tmp_path / "state.db").unlink()
    assert fresh.refresh()
    assert fresh.error is None


def test_the_same_key_twice_is_one_pin_and_another_decision_meanwhile_is_refused() -> None:
    mine = pin(K1, at=9.0)
    assert _pin_over(None, None, mine) == mine
    assert _pin_over(pin(K1), None, mine) == pin(K1), "the first of two that agree stays"
    assert _pin_over(pin(K2), pin(K2), mine) == mine, "a changed key, decided with the old one in sight"
    with pytest.raises(TrustError, match="bob@desk decided meanwhile") as caught:
        _pin_over(pin(K2, by="bob@desk"), None, mine)
    assert caught.value.kind == "changed_meanwhile"
    rejected = TrustDecision(*KEY, "rejected", "ED25519", K1, 5.0, "bob@desk", "reject")
    with pytest.raises(TrustError, match="rejected"):
        _pin_over(rejected, pin(K2), mine)


def test_where_a_file_cannot_be_created_no_key_stays_approved(tmp_path: Path) -> None:
    folder = tmp_path / "machines"
    folder.mkdir()
    (folder / "bora.yaml").write_text("taken: true\n")
    book = TrustBook(str(tmp_path / "state"), str(folder))
    connector = Connector(ConnectorSettings(home=str(tmp_path)))
    desk = TrustDesk(book, connector, lambda: load_machines(str(folder)), time.time, "mia@desk")
    requests = [AddRequest("ada.lan", fingerprint=K1), AddRequest("bora.lan", fingerprint=K2)]
    with pytest.raises(TrustError, match="such a file already"):
        asyncio.run(add_machines(desk, requests))
    assert [path.name for path in folder.iterdir()] == ["bora.yaml"]
    book.refresh()
    assert book.table is not None
    assert not book.table.decisions
