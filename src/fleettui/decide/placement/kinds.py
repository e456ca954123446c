"""Which models a role is likely to serve, where more fit than are meant: by its name."""

from __future__ import annotations

import re

from fleettui.model.catalog import Catalog
from fleettui.model.placement import Assignment, PlacementPlan
from fleettui.model.record import replace

_LEAST_PREFIX = 3
_WORD = re.compile("[a-z0-9]+")


def kind_of_role(role: str, catalog: Catalog) -> str:
    """The kind of model whose name begins as the role's does: `embed-eu` is for `embedding`; empty: any."""
    word = _WORD.match(role.lower())
    if word is None or len(word[0]) < _LEAST_PREFIX:
        return ""
    kinds = dict.fromkeys(model.kind for model in catalog.models)
    return next((kind for kind in kinds if kind.lower().startswith(word[0])), "")


def with_likely_models(plan: PlacementPlan, catalog: Catalog) -> PlacementPlan:
    """The plan with the likely models alone as fitting ones: to show, and to tell what a copy would load.

    A role whose name is no kind's, or none of whose models is of that kind, keeps all.
    """
    kinds = {model.id: model.kind for model in catalog.models}
    wanted = {item.role: kind_of_role(item.role, catalog) for item in plan.assignments}
    return replace(
        plan, assignments=tuple(_of_kind(item, wanted[item.role], kinds) for item in plan.assignments)
    )


def _of_kind(item: Assignment, wanted: str, kinds: dict[str, str]) -> Assignment:
    models = tuple(model for model in item.models_fitting if kinds.get(model) == wanted)
    return replace(item, models_fitting=models) if wanted and models else item
