"""Natural order of names, remembered: routing sorts the same names again and again."""

from functools import lru_cache

from fleettui.model.order import natural_key as _natural_key

natural_key = lru_cache(maxsize=4096)(_natural_key)
