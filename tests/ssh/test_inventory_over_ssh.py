"""`fleettui inventory collect` against real sshd: who is asked, what is read, what a hung tool costs."""

from __future__ import annotations

from pathlib import Path

import asyncssh
import pytest
from sshd_rig import SshdRig
from test_windows_machines import WindowsMachine, listen, write_files
from trust_fleet import TrustFleet, assert_no_login, logins

from fleettui.config.machine_folder import load_machines
from fleettui.fleet.inventory import Collected, collect_profiles
from fleettui.model.profile import ProfileGpu
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector


@pytest.fixture
def fleet(sshd_rig: SshdRig, tmp_path: Path) -> TrustFleet:
    folder = tmp_path / "machines"
    folder.mkdir()
    return TrustFleet(sshd_rig, folder, tmp_path / "state")


def test_one_login_each_and_none_where_the_key_is_not_approved(fleet: TrustFleet) -> None:
    ada, bora = fleet.rig.start(), fleet.rig.start(is_trusted=False)
    fleet.write("ada", ada)
    fleet.write("bora", bora)
    exit_code, document = fleet.documents("inventory", "collect")
    assert exit_code == document["exit_code"] == 1
    (node,) = document["nodes"]
    assert node["name"] == "ada"
    assert node["gpus"] == [
        {
            "index": index, "name": "NVIDIA GeForce RTX 4090", "memory_gb": 24, "memory_mib": 24564,
            "compute_cap": 8.9, "driver": "550.54.15",
        }
        for index in (0, 1)
    ]  # fmt: skip
    assert node["memory_kb"] == int(Path("/proc/meminfo").read_text().split()[1])
    assert node["cpu"]["threads"] >= node["cpu"]["cores"] >= 1
    (error,) = document["errors"]
    assert (error["name"], error["part"]) == ("bora", None)
    assert "approve" in error["message"]
    assert logins(ada) == 1
    assert_no_login(bora)
    asked = (ada.folder / "gpu-calls").read_text().splitlines()
    query = "--query-gpu=index,name,memory.total,compute_cap,driver_version --format=csv,noheader,nounits"
    assert asked == [query]


def test_a_hung_tool_costs_the_cards_and_they_stay_as_they_were(fleet: TrustFleet) -> None:
    ada = fleet.rig.start()
    fleet.write("ada", ada)
    _, first = fleet.documents("inventory", "collect")
    (ada.folder / "gpu-mode").write_text("hang\n")
    exit_code, document = fleet.documents("inventory", "collect", "--deadline", "2.5")
    assert exit_code == 1
    (error,) = document["errors"]
    assert (error["name"], error["part"]) == ("ada", "gpus")
    assert error["message"].startswith("nvidia-smi: no answer within ")
    assert document["nodes"][0]["gpus"] == first["nodes"][0]["gpus"]
    assert (ada.folder / "gpu-calls").read_text().count("\n") == 2


async def test_of_windows_the_cards_alone_are_read_and_an_old_driver_is_asked_again(
    sshd_rig: SshdRig, tmp_path: Path
) -> None:
    windows = WindowsMachine()
    windows.tasks = ""
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await listen(windows, key)
    write_files(sshd_rig, tmp_path / "machines", key, windows.port, 1)
    connector = Connector(sshd_rig.settings())
    told: list[Collected] = []
    machines = load_machines(str(tmp_path / "machines")).machines
    try:
        (found,) = await collect_profiles(
            machines, connector, connector.link_for, told.append, 20.0, lambda: 1000.9
        )
    finally:
        server.close()
    assert told == [found]
    assert found.profile is not None
    assert found.profile.gpus == (
        ProfileGpu(
            0, "NVIDIA GeForce RTX 2080 SUPER", 8, 8192,
            Unknown("the driver does not tell compute capabilities"), "591.86",
        ),
    )  # fmt: skip
    assert found.profile.collected_at == 1000.0
    assert isinstance(found.profile.memory_kb, Unknown)
    assert found.gaps == (), "nothing failed"
    queries = [command for command in windows.commands if "--query-gpu" in command]
    assert [query.split()[1] for query in queries] == [
        "--query-gpu=index,name,memory.total,compute_cap,driver_version",
        "--query-gpu=index,name,memory.total,driver_version",
    ]
    assert windows.most_running == 1
