"""What routing knows beyond the snapshot: leases, the catalog, shapes of models, what was measured."""

from __future__ import annotations

from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.record import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:  # a warm `--route` that finds a resident copy needs none of it
    from collections.abc import Mapping

    from fleettui.decide.model_need import SeenCopy
    from fleettui.model.lease import Lease
    from fleettui.model.model_shape import ModelShape


@dataclass(frozen=True, slots=True)
class RouteKnowledge:
    """Nothing of it is needed: what is missing falls back to the next best basis, and the answer says so."""

    leases: tuple[Lease, ...] = ()
    """Of this fleet; those that are over count for nothing."""
    catalog: Catalog = EMPTY_CATALOG
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    """By digest; of the asked model at least."""
    measured: Mapping[str, tuple[SeenCopy, ...]] = field(default_factory=dict)
    """By digest: VRAM that loads of ours took."""
    load_rates: Mapping[str, float] = field(default_factory=dict)
    """By machine: bytes a second of its last loads."""


NOTHING_KNOWN = RouteKnowledge()
