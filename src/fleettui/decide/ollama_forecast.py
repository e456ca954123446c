"""What Ollama predicts before it loads a model, and what it does by that: evict, one GPU, all GPUs.

Source: ollama/ollama v0.33 server/sched.go and llm/llama_server.go. Its figure is no measurement: file size
plus a cache that is always f16, with heads of embedding / heads, whatever the model's own are.
"""

from __future__ import annotations

from fleettui.decide.model_need import MIB, ContextUse, ModelFacts, adjust_use
from fleettui.model.model_shape import NULL_LIST
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown

USABLE_PERCENT = 80
"""Of free VRAM: what the prediction may take."""
FIT_MARGIN_BYTES = 1024 * MIB
"""llama.cpp's `--fit` leaves that much free on each GPU; layers that do not fit go into main memory."""
_SURCHARGE_BYTES = {512: 0, 1024: 768 * MIB, 2048: 2048 * MIB}
# Batch, from more than so many tokens on, while the prediction takes no more than this percentage of what is
# free.
_BATCHES = ((2048, 32_768, 60), (1024, 4_096, 75))
_CONTEXT_STEPS = ((47, 262_144), (23, 32_768))
"""GiB of all GPUs together from which on a context is the default."""
_SMALLEST_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class OllamaForecast:
    """What Ollama will do with a model that it has to load."""

    predicted_bytes: int
    kv_bytes: int
    batch: int
    """Tokens computed at once."""
    surcharge_bytes: int
    """For that batch; only added where other models are loaded."""
    gpus: tuple[int, ...]
    """Cards it takes now, before anything is evicted."""
    evicts: bool
    """It unloads other models first."""


def default_context(total_vram_mib: Maybe[int]) -> Maybe[int]:
    """Tokens that Ollama takes where nobody names a context, by the VRAM of all its GPUs."""
    if isinstance(total_vram_mib, Unknown):
        return total_vram_mib
    return next((tokens for gib, tokens in _CONTEXT_STEPS if total_vram_mib >= gib * 1024), _SMALLEST_CONTEXT)


def predict_kv_bytes(facts: ModelFacts, use: ContextUse) -> Maybe[int]:
    """2 x layers x fewest KV heads x (embedding / most heads) x all tokens x 2 bytes."""
    shape = facts.shape
    if isinstance(shape, Unknown):
        return shape
    heads, kv_heads = shape.attention.heads, shape.attention.kv_heads
    if isinstance(shape.layers, Unknown) or isinstance(shape.embedding_length, Unknown):
        return Unknown("layers or embedding length not told")
    if isinstance(heads, Unknown) or kv_heads == NULL_LIST or max(heads) == 0:
        return Unknown("attention heads not told")
    fewest = 1 if isinstance(kv_heads, Unknown) else min(kv_heads) or 1
    use = adjust_use(facts, use)
    return 4 * shape.layers * fewest * (shape.embedding_length // max(heads)) * use.context * use.parallel


def choose_batch(tokens: int, predicted: int, free: int) -> int:
    """Tokens at once for a context of `tokens` in all: large ones only with room to spare."""
    for batch, above, percent in _BATCHES:
        if tokens > above and predicted * 100 <= free * percent:
            return batch
    return 512


@dataclass(frozen=True, slots=True)
class Prediction:
    """What Ollama says a model takes, whatever the machine."""

    predicted_bytes: int
    kv_bytes: int
    tokens: int
    """Of all sequences together."""
    is_completion: bool = True
    """Embeddings are computed in small batches."""


def predict(facts: ModelFacts, use: ContextUse) -> Maybe[Prediction]:
    """File size and its idea of the cache."""
    cache = predict_kv_bytes(facts, use)
    if isinstance(cache, Unknown):
        return cache
    if isinstance(facts.file_bytes, Unknown):
        return facts.file_bytes
    adjusted, shape = adjust_use(facts, use), facts.shape
    is_completion = isinstance(shape, Unknown) or not (
        "embedding" in shape.capabilities and "completion" not in shape.capabilities
    )
    tokens = adjusted.context * adjusted.parallel
    return Prediction(facts.file_bytes + cache, cache, tokens, is_completion)


def forecast(
    facts: ModelFacts,
    use: ContextUse,
    free_bytes: dict[int, int],
    *,
    has_other_models: bool,
    spreads: bool = False,
) -> Maybe[OllamaForecast]:
    """What it does with the cards as they are; `spreads` is OLLAMA_SCHED_SPREAD.

    `free_bytes` by index of the card, all of one vendor. The first model of a server is never refused.
    """
    told = predict(facts, use)
    if isinstance(told, Unknown):
        return told
    gpus = _place(told.predicted_bytes, free_bytes, spreads)
    batch, surcharge, is_short = weigh_prediction(told, sum(free_bytes[index] for index in gpus))
    evicts = has_other_models and is_short
    return OllamaForecast(told.predicted_bytes, told.kv_bytes, batch, surcharge, gpus, evicts)


def weigh_prediction(told: Prediction, free_bytes: int) -> tuple[int, int, bool]:
    """(batch, its surcharge, whether that is more than may be used of what is free)."""
    batch = choose_batch(told.tokens, told.predicted_bytes, free_bytes) if told.is_completion else 512
    surcharge = _SURCHARGE_BYTES[batch]
    return batch, surcharge, (told.predicted_bytes + surcharge) * 100 > free_bytes * USABLE_PERCENT


def _place(predicted: int, free_bytes: dict[int, int], spreads: bool) -> tuple[int, ...]:
    """The freest card that has room for it, else all of them."""
    everywhere = tuple(sorted(free_bytes))
    if spreads or len(free_bytes) <= 1:
        return everywhere
    freest = max(everywhere, key=lambda index: free_bytes[index])
    return (freest,) if predicted * 100 <= free_bytes[freest] * USABLE_PERCENT else everywhere
