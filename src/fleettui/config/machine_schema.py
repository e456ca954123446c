"""The machine file as pydantic sees it. Strict types, unknown keys let through."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from fleettui.model.machine import DEFAULT_ENGINE_PORT, EngineKind

# Control characters, line separators, and the marks that reorder text on a screen.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_HOST = re.compile(r"[\w.:%-]+")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[\w.-]+)?")
_USER = re.compile(r"[^\s@:/\\'\"`$;|&<>()-][^\s:/'\"`$;|&<>()]*")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_TOOL_PATH = re.compile(r"(/[a-z0-9_.-]{1,60}){0,11}/nvidia-smi")
"""What fits into a question to the machine's shell as one word; the shell runs nothing of another name."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def refuse(message: str) -> PydanticCustomError:
    """An error whose text is the operator's sentence; braces are kept literally."""
    return PydanticCustomError("operator", "{message}", {"message": message})


def _check_text(value: str) -> str:
    if _UNSHOWABLE.search(value):
        raise refuse("holds a line break or another control character; write it on one plain line")
    if not value.strip():
        raise refuse("is empty; write a value or remove the key")
    if len(value) > 500:
        raise refuse("is longer than 500 characters; shorten it")
    return value.strip()


def _check_host(value: str) -> str:
    text = _check_text(value)
    if "://" in text or "/" in text:
        raise refuse("must be a bare host name or address; leave out http:// and any path")
    if text.startswith("[") or text.endswith("]"):
        raise refuse("must be a bare address; leave out the brackets")
    if ":" in text and not _IPV6.fullmatch(text):
        raise refuse("must not hold a port; put the engine's port in network.port and SSH's in ssh.port")
    if text.startswith("-") or not _HOST.fullmatch(text):
        raise refuse("holds a character that no host name has; write a name such as ada.lan or an address")
    return text


def _check_user(value: str) -> str:
    text = _check_text(value)
    if not _USER.fullmatch(text):
        raise refuse("is no login name; write only the name, such as ops")
    return text


def _check_jump(value: str) -> str:
    text = _check_text(value)
    for hop in text.split(","):
        user, at, rest = hop.strip().rpartition("@")
        bracketed = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?", rest)
        if bracketed:
            host, port = bracketed.groups()
        elif _IPV6.fullmatch(rest):
            host, port = rest, None
        else:
            host, _, port = rest.partition(":")
            port = port or None
        is_port = port is None or (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65535)
        is_host = bool(_HOST.fullmatch(host)) and not host.startswith("-")
        if not is_host or not is_port or (at and not _USER.fullmatch(user)):
            raise refuse("must read [user@]host[:port], several separated by commas; correct it")
    return text


def _check_fingerprint(value: str) -> str:
    text = _check_text(value)
    if not _FINGERPRINT.fullmatch(text):
        raise refuse(
            "must be SHA256: and 43 characters; run `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` "
            "on the machine and copy it whole"
        )
    return text.rstrip("=")


def _check_url(value: str) -> str:
    from urllib.parse import urlsplit

    text = _check_text(value)
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or " " in text:
        raise refuse("must be a URL such as http://ada.lan:8000; correct it")
    if parts.username or parts.password:
        raise refuse("must not hold a password; name a variable in api_key_env instead")
    return text.rstrip("/")


def _check_variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise refuse(
            "must be the name of an environment variable, never the key itself; write one such as VLLM_KEY"
        )
    return value


def _check_tool_path(value: str) -> str:
    if not _TOOL_PATH.fullmatch(value):
        raise refuse(
            "must be an absolute path of lower-case letters, digits, and . _ - / that ends in /nvidia-smi; "
            "correct it, or make a link of that name"
        )
    return value


def _read_nvidia_smi(value: Any) -> Any:
    """The path alone, or a map."""
    return {"path": value} if isinstance(value, str) else value


def _empty_when_null(make: Callable[[], Any]) -> BeforeValidator:
    """`models:` with nothing behind it means none."""
    return BeforeValidator(lambda value: make() if value is None else value)


def _read_ssh(value: Any) -> Any:
    if isinstance(value, str):
        if value == "local":
            return {"is_local": True}
        raise refuse("must be the word local or a map; write `ssh: local` or `ssh: {user: ops}`")
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key != "is_local"}
    return value


Text = Annotated[str, AfterValidator(_check_text)]
Host = Annotated[str, AfterValidator(_check_host)]
Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, protected_namespaces=())


class GpuPart(_Part):
    """An entry of `hardware.gpu`."""

    model: Text | None = None
    vram_gb: Positive | None = None


class HardwarePart(_Part):
    """`hardware`; may be empty."""

    cpu: Text | None = None
    ram_gb: Positive | None = None
    gpu: list[GpuPart] | None = None


class NetworkPart(_Part):
    """`network`: the address that is handed out and the engine's port."""

    hostname: Host
    port: Port | None = None


class SshPart(_Part):
    """`ssh`: how to reach the machine where ~/.ssh/config does not say it."""

    is_local: bool = False
    host: Host | None = None
    user: Annotated[str, AfterValidator(_check_user)] | None = None
    port: Port | None = None
    identity: Text | None = None
    jump: Annotated[str, AfterValidator(_check_jump)] | None = None
    host_key: Annotated[str, AfterValidator(_check_fingerprint)] | None = None


class EnginePart(_Part):
    """An entry of `engines`."""

    kind: EngineKind
    port: Port | None = None
    url: Annotated[str, AfterValidator(_check_url)] | None = None
    api_key_env: Annotated[str, AfterValidator(_check_variable)] | None = None
    start: Text | None = None
    stop: Text | None = None


class NvidiaSmiPart(_Part):
    """`nvidia_smi`: where it is, and whether GPUs that sleep may be woken."""

    path: Annotated[str, AfterValidator(_check_tool_path)] | None = None
    wake: bool | None = None


class MachinePart(_Part):
    """The whole file."""

    name: Text
    role: Text
    hardware: Annotated[HardwarePart, _empty_when_null(dict)]
    network: NetworkPart
    models: Annotated[list[Text], _empty_when_null(list)]
    tags: list[Text] | None = None
    storage_gb: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    nvidia_smi: Annotated[NvidiaSmiPart | None, BeforeValidator(_read_nvidia_smi)] = None
    ssh: Annotated[SshPart | None, BeforeValidator(_read_ssh)] = None
    engines: list[EnginePart] | None = None


DEFAULT_PORTS: dict[EngineKind, int] = {
    "ollama": DEFAULT_ENGINE_PORT,
    "vllm": 8000,
    "llamacpp": 8080,
    "llamaswap": 8080,
    "lmstudio": 1234,
    "sglang": 30000,
}
"""What each engine listens on when nobody says otherwise (their own documentation)."""
