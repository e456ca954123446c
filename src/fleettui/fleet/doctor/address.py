"""Reachability of `hostname:port` from here: what `--route` hands out to scripts."""

from __future__ import annotations

import asyncio

from fleettui.fleet.doctor.check import LIMIT_S, Check, Outcome, failed, passed, skipped, split_advice, warned
from fleettui.fleet.doctor.context import Context, NoAnswer
from fleettui.fleet.doctor.engines import engine_title
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.readings import EngineReading
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.net.dial import connect_any, resolve
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.hops import format_address
from fleettui.net.link import HttpAnswer
from fleettui.probes.doctor import is_loopback, parse_listen
from fleettui.probes.engines import PROBES

GUARD = "it has no login of its own, so let only trusted networks reach the port"


def judge_address(
    where: str,
    endpoint: EngineEndpoint,
    error: LinkError | None,
    own: EngineReading | None,
    listening: Maybe[tuple[str, ...]],
) -> Outcome:
    """A connection from here failed, or there was none to make. `own`: what the engine said on the
    machine itself; `listening`: the addresses it is bound to, as the machine shows them."""
    title = ENGINE_TITLES.get(endpoint.kind, endpoint.kind)
    if error is None:
        return passed(f"{where} is open from here")
    evidence, hint = split_advice(error.text)
    if error.stage == "resolve":
        return failed(evidence, "scripts cannot use this name: correct network.hostname or the DNS entry")
    if own is None or not own.is_answering:
        return warned(f"{evidence}; scripts get {where}", hint or "is the engine running, is the way open?")
    bound = () if isinstance(listening, Unknown) else listening
    is_refused = "refused" in evidence
    if (bound and all(is_loopback(address) for address in bound)) or (not bound and is_refused):
        places = ", ".join(bound) or "the loopback"
        fix = "OLLAMA_HOST=0.0.0.0" if endpoint.kind == "ollama" else "its host option to 0.0.0.0"
        return warned(
            f"{title} listens on {places} only, and scripts get {where} from --route",
            f"set {fix} in its service and restart it; {GUARD}",
        )
    return warned(
        f"{evidence}, though {title} answers on the machine; scripts get {where}",
        "does a firewall close the port to this computer, is network.hostname the right address?",
    )


def judge_answer(where: str, endpoint: EngineEndpoint, reading: EngineReading) -> Outcome:
    """What answered at the address."""
    title = ENGINE_TITLES.get(endpoint.kind, endpoint.kind)
    if reading.is_answering:
        return passed(f"{where} answers from here")
    if reading.state == "unauthorized" and endpoint.api_key_env is not None:
        return passed(f"{where} answers from here; scripts need the key too")  # which is not sent for a check
    if reading.state == "not_an_engine":
        return warned(
            f"{where} is not {title}: {reading.error}",
            "correct network.hostname and network.port: scripts get them",
        )
    return warned(
        f"{where} from here: {reading.error}",
        "a proxy or OLLAMA_ORIGINS in between? scripts will see the same",
    )


def endpoint_of_address(machine: Machine) -> EngineEndpoint | None:
    """The engine whose address is handed out: the one on `network.port`, else the first."""
    engines = [endpoint for endpoint in machine.engines if endpoint.url is None]
    return next((endpoint for endpoint in engines if endpoint.port == machine.port), None)


async def _check_address(context: Context) -> Outcome:
    machine = context.machine
    endpoint = endpoint_of_address(machine)
    if endpoint is None:
        return skipped(f"no engine is declared on port {machine.port}")
    where = format_address(machine.hostname, machine.port)
    own = context.engines.get(endpoint)
    if own is not None and not own.is_answering:
        return skipped(f"needs {engine_title(endpoint)}")
    try:
        async with asyncio.timeout(LIMIT_S):
            host = await _connect(machine.hostname, machine.port, where)
    except LinkError as error:
        return judge_address(where, endpoint, error, own, await _listening(context, machine.port))
    except TimeoutError:
        late = LinkError("resolve", f"{machine.hostname}: no answer of the name server within {LIMIT_S:g} s")
        return judge_address(where, endpoint, late, None, NOT_READ)
    probe = PROBES[endpoint.kind]
    path = probe.vital_paths[0]
    try:
        answer: HttpAnswer = await context.direct.get(
            f"http://{format_address(host, machine.port)}{path}", headers=[("host", where)], timeout_s=LIMIT_S
        )
    except HttpFailure as failure:
        return judge_answer(where, endpoint, probe.read_failure(endpoint.port, failure.text, None, "direct"))
    return judge_answer(where, endpoint, probe.read_answers(endpoint.port, {path: answer}, None, "direct"))


async def _connect(host: str, port: int, where: str) -> str:
    """The address that took a connection. Raises LinkError."""
    addresses = await resolve(host, port, "any")
    sock = await connect_any(where, addresses, address_s=LIMIT_S - 0.2, stagger_s=0.3)
    try:
        return str(sock.getpeername()[0])
    finally:
        sock.close()


async def _listening(context: Context, port: int) -> Maybe[tuple[str, ...]]:
    """Where the machine itself says that the port is bound; Unknown where it cannot be asked."""
    if context.account is None:
        return NOT_READ
    try:
        frame = await context.ask("doctor", "listen")
    except (NoAnswer, LinkError):
        return NOT_READ
    section = frame.sections.get("listen")
    return NOT_READ if section is None else parse_listen(section.payload, port)


ADDRESS_CHECK = Check("address", "address", _check_address, ("file",), has_own_limit=True)
