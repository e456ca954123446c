"""Names of models. Rules of Ollama's `types/model/name.go`: defaults for host, namespace and tag."""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.machine import EngineKind

DEFAULT_HOST = "registry.ollama.ai"
DEFAULT_NAMESPACE = "library"
DEFAULT_TAG = "latest"


@lru_cache(maxsize=8192)
def canonical_name(name: str) -> str:
    """Ollama's shortest form with tag, lower case: `Registry.Ollama.ai/library/x` -> `x:latest`.

    A colon before the last path part belongs to a port (`localhost:5000/team/m`), never to a tag.
    """
    text = name.strip().lower()
    if "://" in text:
        text = text.split("://", 1)[1]
    text = text.split("@", 1)[0]
    path, slash, last = text.rpartition("/")
    model, _, tag = last.partition(":")
    parts = path.split("/") if slash else []
    if len(parts) == 2 and parts[0] == DEFAULT_HOST:
        parts = parts[1:]
    if parts == [DEFAULT_NAMESPACE]:
        parts = []
    return "/".join([*parts, f"{model}:{tag or DEFAULT_TAG}"])


def is_same_model(first: str, second: str) -> bool:
    """True when Ollama takes both names for one model: `x` and `X:latest`, never `x` and `x:1b`."""
    return first == second or canonical_name(first) == canonical_name(second)


def is_served_as(kind: EngineKind, name: str, asked: str) -> bool:
    """True when an engine of that kind serves `name` to a caller who asks for `asked`.

    Ollama fills in defaults and ignores case; every other engine compares the whole id.
    """
    return is_same_model(name, asked) if kind == "ollama" else name == asked


def family_of(name: str) -> str:
    """The name without its tag: `llama3.1:70b` -> `llama3.1`."""
    return canonical_name(name).rpartition(":")[0]
