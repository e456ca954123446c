"""VRAM that a model really takes at a context: the best basis that is known, named.

Order of trust: measured by us, the same weights on another machine, tensors and cache by formula, the
catalog's figure, file size x 1.2. Whatever the basis, a longer context never needs less.
"""

from __future__ import annotations

from fleettui.decide.kv_cache import F16, MICRO_BATCH, CacheTypes, KvCache, kv_cache, pad_cells
from fleettui.decide.layers import ENCODERS
from fleettui.model.literal import Literal
from fleettui.model.model_shape import NOT_TOLD, ModelShape, TensorSums
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import Maybe, Unknown, known_or

NeedBasisName = Literal["measured", "other machine", "tensors", "catalog", "file size"]

GIB = 1 << 30
MIB = 1 << 20
CUDA_CONTEXT_BYTES = 512 * MIB
"""On each GPU, beside everything the engine reports; Ollama reserves 457 MiB, gguf-parser 500 MiB."""
FILE_SIZE_FACTOR = 1.2
_VOCABULARY = 262_144
"""Where it is not told: the largest in use."""
_ENCODER_BUFFER_BYTES = 128 * MIB
"""Encoders compute no vocabulary."""
_PROJECTOR_HEADROOM_BYTES = 256 * MIB
_PROJECTOR_BYTES = GIB
"""A projector whose size is not told."""

ALWAYS_ONE = frozenset({
    "mllama", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen3next", "lfm2", "lfm2moe", "nemotron_h",
    "nemotron_h_moe",
})  # fmt: skip
"""Architectures for which Ollama makes one sequence, whatever OLLAMA_NUM_PARALLEL says (server/sched.go)."""


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How a model is to be loaded."""

    context: int
    """Tokens of one sequence: Ollama's `num_ctx`."""
    parallel: int = 1
    types: CacheTypes = F16
    has_flash_attention: bool = True


@dataclass(frozen=True, slots=True)
class SeenCopy:
    """VRAM that the same weights took somewhere, all of them on GPUs."""

    vram_bytes: int
    """Measured: everything. As an engine reports it (`/api/ps`): without the CUDA context of each card."""
    context: int
    parallel: int | None = None
    """None: not known, taken as the one that is asked for."""
    types: CacheTypes = F16
    gpus: int = 1
    where: str = ""
    """Name of the machine."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """All that is known of a model, by its digest."""

    shape: Maybe[ModelShape] = NOT_TOLD
    file_bytes: Maybe[int] = NOT_TOLD
    measured: tuple[SeenCopy, ...] = ()
    """By the difference in free VRAM around a load of ours."""
    elsewhere: tuple[SeenCopy, ...] = ()
    """As engines report them."""
    catalog_bytes: Maybe[int] = NOT_TOLD


@dataclass(frozen=True, slots=True)
class ModelNeed:
    """VRAM of a model that lies on GPUs whole."""

    shared_bytes: int
    """Weights and cache: what cards can divide among them."""
    per_gpu_bytes: int
    """Compute buffer and the engine's context: on each card."""
    basis: NeedBasisName
    text: str
    """The figures it is made of."""
    layer_bytes: int = 0
    """A card takes whole layers: so much may stay free on it."""
    kv_bytes: Maybe[int] = NOT_TOLD
    is_upper_bound: bool = False

    def total_bytes(self, gpus: int = 1) -> int:
        """On that many cards together."""
        return self.shared_bytes + max(1, gpus) * self.per_gpu_bytes


def adjust_use(facts: ModelFacts, use: ContextUse) -> ContextUse:
    """The use as Ollama carries it out: at most the model's own context, one sequence for some models."""
    shape = facts.shape
    if isinstance(shape, Unknown):
        return use
    context = min(use.context, known_or(shape.max_context, use.context))
    is_embedding = "embedding" in shape.capabilities and "completion" not in shape.capabilities
    name = known_or(shape.architecture, "")
    is_one = is_embedding or name in ALWAYS_ONE or name in ENCODERS
    return replace(use, context=max(1, context), parallel=1 if is_one else max(1, use.parallel))


def find_need(facts: ModelFacts, use: ContextUse) -> Maybe[ModelNeed]:
    """What the model takes when it is loaded like that; Unknown where nothing at all is known of it."""
    use = adjust_use(facts, use)
    need = _from_copies(facts, facts.measured, use, "measured")
    if need is not None:
        return need
    need = _from_copies(facts, facts.elsewhere, use, "other machine")
    if need is not None:
        return _at_least(need, facts, use)
    for guess in (_from_tensors, _from_catalog, _from_file):
        need = guess(facts, use)
        if need is not None:
            return _at_least(need, facts, use)
    return Unknown("neither tensors nor file size are known")


def per_gpu_bytes(shape: Maybe[ModelShape], use: ContextUse) -> int:
    """Compute buffer and CUDA context of one card.

    Logits of a batch, its mask, and a quantised layer unpacked; without flash attention the scores of all
    heads.
    """
    if isinstance(shape, Unknown):
        return CUDA_CONTEXT_BYTES
    cells = pad_cells(use.context)
    cache = kv_cache(shape, use.context, use.parallel, use.types)
    if isinstance(cache, KvCache) and not cache.cells and not cache.window_cells and not cache.state_bytes:
        return _ENCODER_BUFFER_BYTES + CUDA_CONTEXT_BYTES
    buffer = 4 * known_or(shape.vocabulary, _VOCABULARY) * MICRO_BATCH + 2 * cells * MICRO_BATCH
    if use.types.is_quantised and isinstance(cache, KvCache):
        buffer += cache.layer_f16_bytes
    if not use.has_flash_attention:
        heads = max(known_or(shape.attention.heads, (64,)))
        buffer += 4 * heads * cells * MICRO_BATCH
    return buffer + CUDA_CONTEXT_BYTES


def _cache_bytes(shape: Maybe[ModelShape], use: ContextUse) -> Maybe[int]:
    cache = shape if isinstance(shape, Unknown) else kv_cache(shape, use.context, use.parallel, use.types)
    return cache if isinstance(cache, Unknown) else cache.total_bytes


def _layer_bytes(shape: Maybe[ModelShape], shared: int) -> int:
    layers = 0 if isinstance(shape, Unknown) else known_or(shape.layers, 0)
    return shared // layers if layers else 0


def _from_copies(
    facts: ModelFacts, copies: tuple[SeenCopy, ...], use: ContextUse, basis: NeedBasisName
) -> ModelNeed | None:
    """The largest of what they say; with the cache's formula each says something of any context."""
    usable = [need for copy in copies if (need := _from_copy(facts, copy, use, basis)) is not None]
    if not usable:
        return None
    if isinstance(_cache_bytes(facts.shape, use), Unknown):
        return min(usable, key=lambda need: need.shared_bytes)  # those of shorter contexts were left out
    return max(usable, key=lambda need: need.shared_bytes)


def _use_of(copy: SeenCopy, use: ContextUse) -> ContextUse:
    parallel = use.parallel if copy.parallel is None else copy.parallel
    return replace(use, context=copy.context, parallel=parallel, types=copy.types)


def _from_copy(facts: ModelFacts, copy: SeenCopy, use: ContextUse, basis: NeedBasisName) -> ModelNeed | None:
    """What was seen, less its cache, plus the cache asked for; without a formula only for what is no more."""
    seen = adjust_use(facts, _use_of(copy, use))
    per_gpu = per_gpu_bytes(facts.shape, use)
    shared = _shared_of(facts, copy, use, is_reported=basis == "other machine")
    old, new = _cache_bytes(facts.shape, seen), _cache_bytes(facts.shape, use)
    words = f"{_gib(copy.vram_bytes)} GiB {'measured' if basis == 'measured' else 'seen'}"
    words += f"{f' on {copy.where}' if copy.where else ''} at {_say(seen)}"
    words += f" + CUDA {_gib(CUDA_CONTEXT_BYTES)} per GPU" if basis == "other machine" else ""
    words += ", parallel assumed" if copy.parallel is None else ""
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        is_no_more = use.context <= seen.context and use.parallel <= seen.parallel and use.types == seen.types
        if not is_no_more:
            return None
        is_less = (use.context, use.parallel) != (seen.context, seen.parallel)
        return ModelNeed(shared, per_gpu, basis, words, is_upper_bound=is_less)
    if new != old:
        words += f", cache {_gib(old)} -> {_gib(new)} GiB for {_say(use)}"
    scaled = max(shared + new - old, new)
    return ModelNeed(scaled, per_gpu, basis, words, _layer_bytes(facts.shape, scaled), new)


def _from_tensors(facts: ModelFacts, use: ContextUse) -> ModelNeed | None:
    """Weights + cache by formula; where tensors are not told the file stands for them, and the embedding,
    which stays in main memory, counts too."""
    shape = facts.shape
    if isinstance(shape, Unknown):
        return None
    cache = kv_cache(shape, use.context, use.parallel, use.types)
    if isinstance(cache, Unknown):
        return None
    if not isinstance(shape.tensors, Unknown):
        weights, word = _weights(shape, shape.tensors) + _projector_bytes(shape), "weights"
    elif not isinstance(facts.file_bytes, Unknown) and facts.file_bytes > 0:
        weights, word = facts.file_bytes, "file"
    else:
        return None
    shared, per_gpu = weights + cache.total_bytes, per_gpu_bytes(shape, use)
    words = f"{word} {_gib(weights)} + cache {_gib(cache.total_bytes)} GiB ({_say(use)})"
    words += ", sliding window counted in full" if cache.is_upper_bound else ""
    words += f" + buffer {_gib(per_gpu - CUDA_CONTEXT_BYTES)} + CUDA {_gib(CUDA_CONTEXT_BYTES)} per GPU, ±"
    layer = _layer_bytes(shape, shared)
    is_upper = cache.is_upper_bound or word == "file"
    return ModelNeed(shared, per_gpu, "tensors", words, layer, cache.total_bytes, is_upper)


def _weights(shape: ModelShape, tensors: TensorSums) -> int:
    """Encoders have no output matrix that could be tied to the embedding."""
    if known_or(shape.architecture, "") in ENCODERS:
        return tensors.total_bytes - tensors.embedding_bytes - tensors.lookup_bytes
    return tensors.gpu_bytes


def _projector_bytes(shape: ModelShape) -> int:
    """Two bytes for each parameter, and room to work; nothing where it lies among the tensors."""
    if not shape.has_projector:
        return 0
    parameters = shape.projector_parameters
    tensors = _PROJECTOR_BYTES if isinstance(parameters, Unknown) else parameters * 2
    return tensors + _PROJECTOR_HEADROOM_BYTES


def _from_catalog(facts: ModelFacts, use: ContextUse) -> ModelNeed | None:
    """One figure, whatever the context."""
    if isinstance(facts.catalog_bytes, Unknown) or facts.catalog_bytes <= 0:
        return None
    shared = max(0, facts.catalog_bytes - per_gpu_bytes(facts.shape, use))
    return ModelNeed(
        shared, per_gpu_bytes(facts.shape, use), "catalog", f"catalog says {_gib(facts.catalog_bytes)} GiB, ±"
    )


def _from_file(facts: ModelFacts, use: ContextUse) -> ModelNeed | None:
    """A rule of thumb: real models take 1.0 to 6.6 times their file."""
    if isinstance(facts.file_bytes, Unknown) or facts.file_bytes <= 0:
        return None
    shared = int(facts.file_bytes * FILE_SIZE_FACTOR)
    words = f"file {_gib(facts.file_bytes)} GiB x {FILE_SIZE_FACTOR} (assumed)"
    return ModelNeed(shared, per_gpu_bytes(facts.shape, use), "file size", words)


def _shared_of(facts: ModelFacts, copy: SeenCopy, use: ContextUse, *, is_reported: bool) -> int:
    """Weights and cache of what was seen."""
    seen = adjust_use(facts, _use_of(copy, use))
    beside = per_gpu_bytes(facts.shape, seen) - (CUDA_CONTEXT_BYTES if is_reported else 0)
    return max(0, copy.vram_bytes - copy.gpus * beside)


def _at_least(need: ModelNeed, facts: ModelFacts, use: ContextUse) -> ModelNeed:
    """No less than was seen at a shorter context, where nothing says how it grows."""
    least = 0
    for copies, is_reported in ((facts.measured, False), (facts.elsewhere, True)):
        for copy in copies:
            if copy.context <= use.context and copy.types == use.types:
                least = max(least, _shared_of(facts, copy, use, is_reported=is_reported))
    if least <= need.shared_bytes:
        return need
    return replace(need, shared_bytes=least, text=f"{need.text}; no less than was seen: {_gib(least)} GiB")


def _say(use: ContextUse) -> str:
    """`32768 x 2 q8_0`."""
    types = use.types.key if use.types.key == use.types.value else f"{use.types.key}/{use.types.value}"
    sequences = f" x {use.parallel}" if use.parallel > 1 else ""
    return f"ctx {use.context}{sequences}, {types}"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"
