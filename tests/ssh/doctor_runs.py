"""Runs the doctor's checks on machines of the rig."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sshd_rig import SshdServer

from fleettui.fleet.doctor.context import LinkFor
from fleettui.fleet.doctor.run import doctor_settings, run_doctor
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_gate import TrustGate
from fleettui.model.doctor import CheckResult, Checkup
from fleettui.model.machine import Machine
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings


@dataclass(frozen=True)
class Found:
    """A checkup by the ids of its checks."""

    checkup: Checkup

    def __getitem__(self, check_id: str) -> CheckResult:
        return next(result for result in self.checkup.results if result.id == check_id)

    def states(self) -> dict[str, str]:
        return {result.id.partition(":")[0]: result.state for result in self.checkup.results}

    def skipped_for(self, reason: str) -> list[str]:
        """Ids of the checks skipped with this reason."""
        return [
            item.id.partition(":")[0]
            for item in self.checkup.results
            if item.state == "skip" and item.evidence == reason
        ]


def link_for(connector: Connector) -> LinkFor:
    """Links as known_hosts says."""
    return lambda machine, steps: connector.link_for(machine, steps=steps)


async def examine(
    settings: ConnectorSettings,
    *machines: Machine,
    deadline_s: float | None = None,
    book: TrustBook | None = None,
) -> list[Found]:
    """All checks of these machines; `book`: what was decided about their keys."""
    connector = Connector(doctor_settings(settings))
    links = link_for(connector)
    if book is not None:
        gate = TrustGate(book, connector, time.time)
        await gate.load()
        links = gate.link_for
    checkups = await run_doctor(machines, connector, links, lambda checkup: None, deadline_s)
    return [Found(checkup) for checkup in checkups]


def put_tool(server: SshdServer, name: str, body: str) -> None:
    """A stand-in program in the machine's PATH: a shell script."""
    path = server.folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


PERSISTENT_SMI = """
for word; do
    case $word in
    --query-gpu=*persistence_mode*) fields=${word#*=} ;;
    esac
done
[ -n "$fields" ] || exec "${0%/*}/cards" "$@"
for gpu in 0 1; do
    line= rest=$fields,
    while [ -n "$rest" ]; do
        case ${rest%%,*} in
        index) v=$gpu ;;
        persistence_mode) v=MODE ;;
        *) v='[N/A]' ;;
        esac
        line="$line, $v" rest=${rest#*,}
    done
    echo "${line#, }"
done
"""


def put_persistent_smi(server: SshdServer, mode: str = "Enabled") -> None:
    """The rig's nvidia-smi, which also tells the persistence mode."""
    tool = server.folder / "bin" / "nvidia-smi"
    tool.rename(tool.with_name("cards"))
    put_tool(server, "nvidia-smi", PERSISTENT_SMI.replace("MODE", mode))


def put_readable_journal(server: SshdServer) -> None:
    """journalctl for a user who may read everything."""
    put_tool(server, "journalctl", "echo '2026-03-10T09:15:30+0000 ada kernel: usb 1-4: new device'")
