"""Metrics of this server: how its polls go, what it decided, who has a lease."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fleettui import __version__
from fleettui.model.record import dataclass
from fleettui.model.route import EXIT_NO_DATA, EXIT_NONE_ELIGIBLE, EXIT_ROUTED, EXIT_UNKNOWN_MODEL
from fleettui.serve.metrics.sheet import Sheet, counter, gauge, info, label, summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleettui.model.lease import Lease
    from fleettui.model.snapshot import FleetSnapshot

OUTCOMES = {
    EXIT_ROUTED: "routed",
    EXIT_NONE_ELIGIBLE: "none_eligible",
    EXIT_UNKNOWN_MODEL: "unknown_model",
    EXIT_NO_DATA: "no_telemetry",
}
LEASE_KINDS = ("resident", "cold")

BUILD = info("fleettui_build_info", ("version",), "The version of fleettui that answers")
READY = gauge("fleettui_ready", (), "1 once every machine has answered or failed since the start")
INTERVAL = gauge("fleettui_poll_interval_seconds", (), "How often each machine is asked", "seconds")
PROBLEMS = gauge("fleettui_config_problems", (), "Errors in machine files and the catalog")
NOTICES = gauge("fleettui_notices", (), "What the operator should look at: notices of /health")
READERS = gauge("fleettui_stream_readers", (), "Readers of /api/stream")
DECISIONS = counter(
    "fleettui_route_decisions_total", ("outcome",),
    "Questions where a model should be served: routed, none_eligible, unknown_model, no_telemetry",
)  # fmt: skip
LEASES = gauge(
    "fleettui_leases",
    ("machine", "kind"),
    "Choices of routing whose effect no poll has shown yet: resident, cold",
)
POLL_TIME = summary(
    "fleettui_poll_duration_seconds", ("machine", "loop"),
    "From a question to the answer of a machine, loop facts or gpu; their number counts the polls", "seconds",
)  # fmt: skip

METRICS = (BUILD, READY, INTERVAL, PROBLEMS, NOTICES, READERS, DECISIONS, LEASES, POLL_TIME)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What this server knows of itself at one moment."""

    is_ready: bool
    notices: int
    readers: int
    decisions: Mapping[int, int]
    """Exit code of the command line -> how often."""
    poll_times: tuple[tuple[str, str, float, int], ...]
    """Machine, loop, sum of seconds, answers."""


def write_server(
    sheet: Sheet, fleet: FleetSnapshot, facts: ServerFacts, leases: tuple[Lease, ...] | None
) -> None:
    """`leases`: None where they cannot be read."""
    sheet.add_info(BUILD, label("version", __version__))
    sheet.add(READY, "", facts.is_ready)
    sheet.add(INTERVAL, "", fleet.interval_s)
    sheet.add(PROBLEMS, "", len(fleet.problems))
    sheet.add(NOTICES, "", facts.notices)
    sheet.add(READERS, "", facts.readers)
    for code, outcome in OUTCOMES.items():
        sheet.add(DECISIONS, f'outcome="{outcome}"', facts.decisions.get(code, 0))
    for machine, loop, total, count in facts.poll_times:
        sheet.add_sum(POLL_TIME, f'{label("machine", machine)},loop="{loop}"', total, count)
    if leases is not None:
        held: Counter[tuple[str, str]] = Counter((lease.machine, lease.kind) for lease in leases)
        for snapshot in fleet.machines:
            for kind in LEASE_KINDS:
                sheet.add(
                    LEASES, f'{label("machine", snapshot.name)},kind="{kind}"', held[snapshot.name, kind]
                )
