"""models.yaml as pydantic sees it. Strict types, unknown keys let through."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from fleettui.config.machine_schema import Positive, Text, refuse

_CAPABILITY = re.compile(r"([0-9]{1,2})(?:\.([0-9]{1,2}))?", re.ASCII)
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def find_capability(value: Any) -> tuple[int, int] | None:
    """(8, 10) of `8.10` or `"8.10"`, by the digits as written: 8.9 is the older of the two."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        found = _CAPABILITY.fullmatch(str(value).strip())
        if found:
            return int(found[1]), int(found[2] or 0)
    return None


def _read_capability(value: Any) -> Any:
    found = find_capability(value)
    if found is not None:
        return found
    raise refuse("must be a compute capability; write for example 8.9")


def _check_kind(value: str) -> str:
    if not _KIND.fullmatch(value):
        raise refuse("must be one word in lower case; write llm, embedding, reranker, tts or one of your own")
    return value


def _in_list(value: Any) -> Any:
    """One name may stand without brackets."""
    return [value] if isinstance(value, str) else value


def _empty_when_null(value: Any) -> Any:
    """`models:` with nothing behind it means none."""
    return {} if value is None else value


Capability = Annotated[
    Any,
    BeforeValidator(_read_capability),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": f"^{_CAPABILITY.pattern}$"},
            ]
        }
    ),
]
Kind = Annotated[Text, AfterValidator(_check_kind)]
Names = Annotated[
    list[Text],
    BeforeValidator(_in_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class LoosePart(BaseModel):
    """A map of the catalog: strict types, keys of the operator's own let through."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, protected_namespaces=())


class CatalogEnginePart(LoosePart):
    """An entry of `engines`: bounds for every model it serves."""

    min_cc: Annotated[Capability | None, Field(description="lowest compute capability")] = None
    cpu: Annotated[bool | None, Field(description="it serves without a GPU too")] = None


class CatalogModelPart(LoosePart):
    """An entry of `models`."""

    kind: Annotated[Kind | None, Field(description="llm, embedding, reranker, tts, …")] = None
    vram_gb: Annotated[Positive | None, Field(description="GiB of weights and the smallest KV cache")] = None
    min_cc: Annotated[Capability | None, Field(description="lowest compute capability")] = None
    engines: Annotated[Names | None, Field(description="engines that can serve it; any if left out")] = None
    context: Annotated[int | None, Field(gt=0, description="tokens")] = None
    lora: Annotated[bool | None, Field(description="LoRA adapters may be served on it")] = None
    names: Annotated[dict[str, Names] | None, Field(description="its name, or names, by engine")] = None
    keep: Annotated[
        int | None, Field(ge=0, description="copies that stay resident while a machine is drained")
    ] = None
    num_ctx: Annotated[
        int | None, Field(gt=0, description="tokens that fleettui names when it loads a copy on an Ollama")
    ] = None


class CatalogPart(LoosePart):
    """The whole file."""

    engines: Annotated[dict[Text, CatalogEnginePart | None], BeforeValidator(_empty_when_null)] = Field(
        default_factory=dict
    )
    models: Annotated[dict[Text, CatalogModelPart | None], BeforeValidator(_empty_when_null)] = Field(
        default_factory=dict
    )
