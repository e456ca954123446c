"""Which layers of a model keep what of the context: all of it, a window, a state of fixed size, nothing."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.model_shape import NULL_LIST, Counts, ModelShape
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown, known_or

LayerKind = Literal["full", "window", "none"]

ENCODERS = frozenset({
    "bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert",
    "eurobert", "gemma-embedding", "t5encoder", "dream", "llada", "llada-moe", "rnd1",
})  # fmt: skip
"""Architectures for which llama.cpp makes no cache."""
STATE_OF_OTHER_SIZE = ("rwkv", "arwkv", "kimi-linear")
"""Their state follows other formulas."""
STATE_BESIDE_ATTENTION = frozenset({"falcon-h1"})
"""Every layer has both."""
_FORCED_WINDOW = {"llama4": 8192, "smallthinker": 4096}
_DEFAULT_WINDOW = {"gemma2": 4096, "exaone-moe": 128, "exaone4": 4096, "llama4": 8192}
"""Where the file names none."""
_WINDOW_ONLY_WITH_LAYERS = {"exaone4": 64}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Every n-th layer is global, the last of n or the first."""

    every: int
    is_global_first: bool = False


# Source: set_swa_pattern and load_swa_pattern in llama.cpp src/models. Phi-3 tells a window that llama.cpp
# does not use (ggml-org/llama.cpp#13676): what is not here and tells no pattern is counted in full.
_PATTERNS = {
    "gemma2": _Pattern(2),
    "gemma3": _Pattern(6),
    "gemma3n": _Pattern(5),
    "cohere2": _Pattern(4),
    "cohere2moe": _Pattern(4, True),
    "afmoe": _Pattern(4),
    "olmo2": _Pattern(4),
    "mellum": _Pattern(4),
    "plamo3": _Pattern(8),
    "exaone4": _Pattern(4),
    "exaone-moe": _Pattern(4),
    "gpt-oss": _Pattern(2),
    "gptoss": _Pattern(2),  # Ollama's own spelling
    "llama4": _Pattern(4),
    "smallthinker": _Pattern(4, True),
    "laguna": _Pattern(4, True),
}
_NO_WINDOW = frozenset({"phi3"})


@dataclass(frozen=True, slots=True)
class Layers:
    """What each layer keeps."""

    kinds: tuple[LayerKind, ...]
    kv_heads: Counts
    """Of each layer."""
    window: int = 0
    recurrent: int = 0
    """Layers with a state of fixed size."""
    is_upper_bound: bool = False
    """The engine does not tell which layers have a window: all are counted in full."""


def find_layers(shape: ModelShape) -> Maybe[Layers]:
    """What each layer of the model keeps; Unknown where a list is missing that decides it."""
    architecture = known_or(shape.architecture, "")
    if isinstance(shape.layers, Unknown) or not 0 < shape.layers <= 4096:
        return Unknown("number of layers not told")
    if architecture.startswith(STATE_OF_OTHER_SIZE):
        return Unknown(f"no formula for the state of {architecture}")
    count = max(0, shape.layers - known_or(shape.nextn_layers, 0))
    if architecture in ENCODERS or shape.attention.is_causal is False:
        nothing: list[LayerKind] = ["none"] * count
        return Layers(tuple(nothing), (0,) * count)
    heads = _kv_heads(shape, count)
    if isinstance(heads, Unknown):
        return heads
    has_attention = _has_attention(shape, heads)
    if isinstance(has_attention, Unknown):
        return has_attention
    windowed = _windowed(shape, architecture, count)
    own = count - known_or(shape.attention.shared_kv_layers, 0)
    kinds: list[LayerKind] = ["none"] * count
    for at in range(count):
        if has_attention[at] and at < own:
            kinds[at] = "window" if windowed and windowed[at] else "full"
    is_sliding = bool(windowed and any(windowed))
    return Layers(
        tuple(kinds),
        heads,
        _window(shape, architecture, count) if is_sliding else 0,
        _count_recurrent(shape, architecture, has_attention),
        windowed is None,
    )


def spread(values: Counts, count: int) -> Counts:
    """One number for each layer: a list as it is, one number for all, what is missing as the last one."""
    return values[:count] + (values[-1],) * (count - len(values))


def _kv_heads(shape: ModelShape, count: int) -> Maybe[Counts]:
    """Where they are not told every head has its own keys and values."""
    told = shape.attention.kv_heads
    if told == NULL_LIST:
        return NULL_LIST
    values = shape.attention.heads if isinstance(told, Unknown) else told
    return values if isinstance(values, Unknown) else spread(values, count)


def _has_attention(shape: ModelShape, kv_heads: Counts) -> Maybe[tuple[bool, ...]]:
    attention = shape.attention
    count = len(kv_heads)
    if attention.recurrent_layers == NULL_LIST:
        return NULL_LIST
    if not isinstance(attention.recurrent_layers, Unknown) and len(attention.recurrent_layers) > 1:
        return tuple(flag == 0 for flag in spread(attention.recurrent_layers, count))
    interval = known_or(attention.full_attention_interval, 0)
    if interval > 0:
        return tuple((at + 1) % interval == 0 for at in range(count))
    return tuple(heads > 0 for heads in kv_heads)


def _count_recurrent(shape: ModelShape, architecture: str, has_attention: tuple[bool, ...]) -> int:
    """Layers with a state: those without attention that are no plain feed-forward ones."""
    state = shape.state
    if isinstance(state.inner_size, Unknown) and isinstance(state.short_conv, Unknown):
        return 0
    if architecture in STATE_BESIDE_ATTENTION:
        return len(has_attention)
    forward = shape.feed_forward
    if architecture.startswith("nemotron_h") and not isinstance(forward, Unknown) and len(forward) > 1:
        widths = spread(forward, len(has_attention))
        return sum(not here and width == 0 for here, width in zip(has_attention, widths, strict=True))
    return sum(not here for here in has_attention)


def _window(shape: ModelShape, architecture: str, count: int) -> int:
    """Tokens of the window, 0 for none."""
    needed = _WINDOW_ONLY_WITH_LAYERS.get(architecture)
    if architecture in _NO_WINDOW or (needed is not None and count != needed):
        return 0
    told = shape.attention.window
    if told == 0:
        return 0
    if isinstance(told, Unknown):
        return _DEFAULT_WINDOW.get(architecture, 0)
    return _FORCED_WINDOW.get(architecture, told)


def _windowed(shape: ModelShape, architecture: str, count: int) -> tuple[bool, ...] | None:
    """Which layers have a window; None where there is one and nothing says in which layers."""
    if _window(shape, architecture, count) <= 0:
        return (False,) * count
    told = shape.attention.window_pattern
    known = _PATTERNS.get(architecture)
    if not isinstance(told, Unknown) and len(told) > 1:
        return tuple(flag != 0 for flag in spread(told, count))
    if told == NULL_LIST:
        return None
    if not isinstance(told, Unknown):
        every, is_first = told[0], known is not None and known.is_global_first
    elif known is not None:
        every, is_first = known.every, known.is_global_first
    else:
        return None
    if every <= 0:
        return (True,) * count
    return tuple((at % every != 0) if is_first else (at % every < every - 1) for at in range(count))
