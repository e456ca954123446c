"""How each declared machine stands, without contacting any."""

from __future__ import annotations

from fleettui.decide.trust import TrustTable
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.model.machine import Machine
from fleettui.model.trust import ListedTrust, TrustDecision
from fleettui.net.errors import LinkError


def list_trust(desk: TrustDesk) -> dict[str, ListedTrust]:
    """By name; empty where decisions cannot be read."""
    desk.book.refresh()
    table = desk.book.table
    if table is None:
        return {}
    return {machine.name: _listed(desk, table, machine) for machine in desk.files().machines}


def _listed(desk: TrustDesk, table: TrustTable, machine: Machine) -> ListedTrust:
    try:
        address = desk.connector.addresses_of(machine)[-1]
    except LinkError:
        return ListedTrust(machine.name, "", "pending")
    found = table.find(machine.name, address)
    if found is not None and found.offer is not None and found.offer.expected:
        return _with(machine, address, "key_changed", found)
    if machine.ssh.is_local or machine.ssh.host_key is not None:
        return ListedTrust(machine.name, address, "approved")
    if found is not None and found.kind == "pinned":
        return _with(machine, address, "key_changed" if found.offer is not None else "approved", found)
    if found is not None and found.kind == "rejected":
        return _with(machine, address, "rejected", found)
    if table.counts_known_hosts(machine.name, address) and desk.connector.knows_key_of(machine):
        return ListedTrust(machine.name, address, "approved")
    return _with(machine, address, "pending", found)


def _with(machine: Machine, address: str, trust: str, found: TrustDecision | None) -> ListedTrust:
    return ListedTrust(machine.name, address, trust, found)  # type: ignore[arg-type]
