"""How an Ollama server was set up, as far as its environment says; what is not set is its own default."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown

FlashAttention = Literal["on", "off", "auto"]

NOT_SET = Unknown("not set, so the server's own default")


@dataclass(frozen=True, slots=True)
class OllamaSettings:
    """Environment of the service; nothing else of it is ever read."""

    port: int = 11434
    """Where it listens: OLLAMA_HOST."""
    parallel: Maybe[int] = NOT_SET
    """OLLAMA_NUM_PARALLEL: requests at once on each copy; the default is 1."""
    cache_type: Maybe[str] = NOT_SET
    """OLLAMA_KV_CACHE_TYPE, of keys and values; the default is f16."""
    context: Maybe[int] = NOT_SET
    """OLLAMA_CONTEXT_LENGTH: tokens where a request names none; the default follows VRAM."""
    flash_attention: FlashAttention = "auto"
    """OLLAMA_FLASH_ATTENTION."""
    spreads: bool = False
    """OLLAMA_SCHED_SPREAD: each model over all GPUs."""
    max_loaded: Maybe[int] = NOT_SET
    """OLLAMA_MAX_LOADED_MODELS; the default is 3 for each GPU."""
    keep_alive: Maybe[str] = NOT_SET
    """OLLAMA_KEEP_ALIVE as it is written; the default is 5m."""

    @property
    def load_values(self) -> tuple[object, ...]:
        """What decides how a model is loaded, None where it is not set; equal ones load it alike."""
        parallel, cache_type, context, kept = self.parallel, self.cache_type, self.context, self.max_loaded
        return (
            None if type(parallel) is Unknown else parallel,
            None if type(cache_type) is Unknown else cache_type,
            None if type(context) is Unknown else context,
            None if type(kept) is Unknown else kept,
            self.flash_attention,
            self.spreads,
        )
