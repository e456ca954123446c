"""What the gate notes of keys that wait reaches the state database, also where that could not be written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fleettui.config.machine_folder import load_machines
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_gate import TrustGate
from fleettui.model.snapshot import HostKeyOffer
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.net.settings import ConnectorSettings

KEY = "SHA256:" + "a" * 43


async def test_a_key_that_could_not_be_kept_is_kept_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, state = tmp_path / "machines", tmp_path / "state"
    folder.mkdir()
    (folder / "ada.yaml").write_text(
        "name: ada\nrole: gpu-host\nhardware: {}\nnetwork: {hostname: 192.0.2.7}\nmodels: []\n"
    )
    (machine,) = load_machines(str(folder)).machines
    gate = TrustGate(
        TrustBook(str(state), str(folder)), Connector(ConnectorSettings(home=str(tmp_path))), time.time
    )
    await gate.load()
    gate.link_for(machine)
    record = MachineRecord(machine)
    offer = HostKeyOffer("ED25519", KEY, "ABCD-EFGH")
    record.link_failed(LinkError("host key", "not approved", offer=offer, is_retryable=False), None, 1.0)
    gate.note_failure(record)

    state.write_text("in the way")
    for _ in range(3):
        await gate.refresh(lambda _: record)
    assert [item.message for item in caplog.records if "cannot be kept" in item.message], "it is told"
    assert len([item for item in caplog.records if "cannot be kept" in item.message]) == 1, "once"
    state.unlink()
    await gate.refresh(lambda _: record)
    await gate.close(lambda _: record)
    book = TrustBook(str(state), str(folder))
    book.refresh()
    assert book.table is not None
    assert [item.offer and item.offer.fingerprint for item in book.table.decisions.values()] == [KEY]
