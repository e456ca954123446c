"""Forwarding, and each engine by the way that works: the connection, straight, the machine's own curl."""

from __future__ import annotations

import asyncio
import time

from fleettui.fleet.doctor.check import LIMIT_S, Check, Outcome, failed, passed, split_advice, warned
from fleettui.fleet.doctor.context import Context
from fleettui.fleet.doctor.login import not_over_ssh
from fleettui.fleet.engine_feed import EngineFeed
from fleettui.fleet.engine_key import read_key
from fleettui.fleet.engine_record import EngineRecord
from fleettui.fleet.remote_http import RemoteHttp
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.readings import EngineReading
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines import PROBES, AskedBy
from fleettui.view.units import count

_WAYS: dict[AskedBy, str] = {
    "tunnel": "",
    "direct": ", asked straight from here",
    "remote": ", asked by the machine's own curl or wget",
}


def judge_forwarding(port: int, failure: HttpFailure | None) -> Outcome:
    """Does the SSH server open a channel to the engine's port? Whether anything listens is another check."""
    if failure is None or failure.kind in ("protocol", "too_large", "timeout"):
        return passed(f"opens a channel to port {port}")
    if failure.kind == "refused":
        return passed(f"allowed; nothing listens on port {port}")
    if failure.kind == "forbidden":
        return warned(
            "SSH port forwarding is refused there",
            f"allow it: AllowTcpForwarding yes, PermitOpen 127.0.0.1:{port} (sshd_config, authorized_keys)",
        )
    evidence, hint = split_advice(failure.text)
    return failed(evidence, hint or "run the check-up again; see the machine's sshd log")


def judge_engine(endpoint: EngineEndpoint, reading: EngineReading | None, limit_s: float) -> Outcome:
    """What the engine said; `reading` None: nothing within the limit."""
    title = ENGINE_TITLES.get(endpoint.kind, endpoint.kind)
    if reading is None:
        return failed(
            f"accepts connections and gives no answer within {limit_s:g} s",
            f"is it loading or hung? see {title}'s log (journalctl -u {endpoint.kind})",
        )
    error = reading.error or ""
    if reading.state == "unauthorized":
        if endpoint.api_key_env is not None:
            return failed(error, f"put the right key into {endpoint.api_key_env} before you start fleettui")
        return failed(error, "a proxy or key guards it: set engines[].api_key_env")
    if reading.state == "not_an_engine":
        return failed(
            f"{error}; this is no {title}", "correct network.port or engines[].port in the machine file"
        )
    if reading.state == "busy":
        return warned(error, "it refuses further requests now; more copies or machines would help")
    if reading.state == "down":
        return failed(error, f"start {title} there, or correct its port in the machine file")
    version = "" if isinstance(reading.version, Unknown) else f"version {reading.version}"
    loaded = "" if isinstance(reading.loaded, Unknown) else f"{len(reading.loaded)} loaded"
    installed = (
        "" if isinstance(reading.installed, Unknown) else f"{count(len(reading.installed), 'model')} on disk"
    )
    told = ", ".join(part for part in (version, loaded, installed) if part) or "answers"
    if error and endpoint.api_key_env is not None and "api_key_env" in error:
        return warned(f"{told}; {error}", f"set {endpoint.api_key_env}, or leave api_key_env away")
    if error:
        return warned(f"{told}; {error}", f"see {title}'s log (journalctl -u {endpoint.kind})")
    return passed(f"{told}{_WAYS[reading.path]}")


def first_endpoint(machine: Machine) -> EngineEndpoint | None:
    """The engine that forwarding is tried with: the first on the machine itself."""
    return next((endpoint for endpoint in machine.engines if endpoint.url is None), None)


async def _check_forwarding(context: Context) -> Outcome:
    endpoint = first_endpoint(context.machine)
    port = endpoint.port if endpoint is not None else context.machine.port
    path = PROBES[endpoint.kind].vital_paths[0] if endpoint is not None else "/"
    failure = None
    try:
        await context.link.get(port, path, timeout_s=LIMIT_S)
    except HttpFailure as error:
        failure = error
    return judge_forwarding(port, failure)


FORWARDING_CHECK = Check(
    "forwarding", "forwarding", _check_forwarding, ("authentication",), not_over_ssh, has_own_limit=True
)


def engine_checks(machine: Machine) -> tuple[Check, ...]:
    """A check for each declared engine."""
    return tuple(_engine_check(endpoint) for endpoint in machine.engines)


def _engine_check(endpoint: EngineEndpoint) -> Check:
    async def check(context: Context) -> Outcome:
        reading = await _ask_engine(context, endpoint)
        if reading is not None:
            context.engines[endpoint] = reading
        return judge_engine(endpoint, reading, LIMIT_S)

    needs = ("authentication",) if endpoint.url is None else ("file",)
    name = f"engine:{endpoint.kind}:{endpoint.port}"
    return Check(name, engine_title(endpoint), check, needs, has_own_limit=True)


def engine_title(endpoint: EngineEndpoint) -> str:
    """`Ollama :11434`."""
    return f"{ENGINE_TITLES.get(endpoint.kind, endpoint.kind)} :{endpoint.port}"


async def _ask_engine(context: Context, endpoint: EngineEndpoint) -> EngineReading | None:
    """All that a poll asks of an engine, once; None: no answer to a question that counts."""
    machine = context.machine
    record = EngineRecord(endpoint, machine.engines, read_key(endpoint, machine.engines, machine.config_file))
    answered: set[str] = set()
    news = asyncio.Event()

    def take(_: EngineEndpoint, path: str, answer: HttpAnswer | HttpFailure, way: AskedBy) -> None:
        record.take(path, answer, way, time.time())
        answered.add(path)
        feed.ask_allowed(context.link)
        news.set()

    remote = RemoteHttp(time.time)

    async def get_remote(port: int, path: str) -> HttpAnswer:
        if context.is_windows:  # no shell of ours
            raise HttpFailure("forbidden", "SSH forwarding is refused there and the port is closed from here")
        return await remote.get(context.link, port, path)

    feed = EngineFeed(machine.hostname, record, take, get_remote, context.direct)
    try:
        async with asyncio.timeout(LIMIT_S):
            feed.ask(context.link, time.time())
            while feed.is_waiting:
                news.clear()
                await news.wait()
    except TimeoutError:
        pass
    finally:
        feed.close()
        remote.close()
    return record.reading if answered.intersection(record.probe.vital_paths) else None
