"""The API key of an engine: read from the operator's environment, held here, told to the engine alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from fleettui.model.machine import EngineEndpoint
from fleettui.net.link import Header, HttpAnswer

MAX_KEY = 4096


class EngineKey:
    """What a request carries because of `engines[].api_key_env`, or why it carries nothing.

    Not a record: nothing that prints, compares or stores records may come upon a key.
    """

    __slots__ = ("headers", "problem", "variable")

    def __init__(self, variable: str = "", key: str = "", problem: str | None = None) -> None:
        self.variable = variable
        """Its name; "": the machine file names none."""
        self.headers: tuple[Header, ...] = (("Authorization", f"Bearer {key}"),) if key else ()
        self.problem = problem
        """In the operator's words; None: none is wanted, or it is there."""

    def strip(self, answer: HttpAnswer) -> HttpAnswer:
        """The answer without the key: a proxy may repeat it in its error, which is shown and stored."""
        if not self.headers:
            return answer
        key = self.headers[0][1].removeprefix("Bearer ")
        headers = tuple((name, value.replace(key, "***")) for name, value in answer.headers)
        body = answer.body.replace(key.encode(), b"***")
        return HttpAnswer(answer.status, headers, body, answer.received_at)

    def __repr__(self) -> str:
        return f"<EngineKey {self.variable}>"


NO_KEY = EngineKey()


def read_key(
    endpoint: EngineEndpoint,
    siblings: Sequence[EngineEndpoint],
    config_file: str,
    environment: Mapping[str, str] = os.environ,
) -> EngineKey:
    """The key of the variable that the machine file names. Its value is in no message."""
    variable = endpoint.api_key_env
    if variable is None:
        return NO_KEY
    where = f"{PurePath(config_file).name or 'machine file'}: engines[{siblings.index(endpoint)}].api_key_env"
    key = environment.get(variable, "").strip()
    if not key:
        return EngineKey(variable, problem=f"{where}: the environment variable {variable} is not set")
    if len(key) > MAX_KEY or not (key.isascii() and key.isprintable() and " " not in key):
        return EngineKey(
            variable, problem=f"{where}: what {variable} holds is no key (a blank, or no ASCII), not sent"
        )
    return EngineKey(variable, key)
