"""Engines in the operator's words; kept small for routing, which starts often."""

from __future__ import annotations

from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.readings import EngineReading


def engine_title(kind: str, port: int) -> str:
    """`Ollama on port 11434`."""
    return f"{ENGINE_TITLES.get(kind, kind)} on port {port}"


def engine_trouble(engine: EngineReading) -> str:
    """What is wrong with an engine that is not ok, in the operator's words."""
    title, error = engine_title(engine.kind, engine.port), engine.error
    if engine.state == "unauthorized":
        if error is not None and "api_key_env" in error:  # it is set, and the error says what is wrong there
            return f"{title}: {error}"
        return f"{title}: {error or 'login needed'}; set `api_key_env` in the machine file"
    if engine.state == "not_an_engine":
        return f"{title}: {error or 'something else answers there'}; correct `network.port`"
    if engine.state == "busy":
        return f"{title} is busy{': ' + error.removeprefix('busy: ') if error else ' and answers late'}"
    if engine.state == "loading":
        return f"{title} is loading its model"
    return f"{title} does not answer{': ' + error if error else ''}"
