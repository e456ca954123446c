"""What the catalog allows and nobody means."""

from __future__ import annotations

from fleettui.decide.placement.board import Board
from fleettui.decide.placement.fitting import Fitting
from fleettui.decide.placement.greedy import fill
from fleettui.decide.placement.pool import Pool, build_pool
from fleettui.decide.placement.queue import build_queue
from fleettui.decide.placement.words import number, plural
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import PlanNode, PlanRole
from fleettui.model.placement_answers import LintFinding
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HAIR = 0.1
"""Share of a card's memory by which a need is a hair above it. Cards sold with 24 GB report 22 (L4, A10),
those with 48 report 45 (L40S), those with 16 report 15 (T4)."""


def lint(
    nodes: Iterable[PlanNode], roles: Iterable[PlanRole], catalog: Catalog = EMPTY_CATALOG
) -> tuple[LintFinding, ...]:
    """All findings: roles as in the queue, then engines and models as in the catalog."""
    pool = build_pool(nodes, include_unavailable=True)
    given = tuple(roles)
    active = build_queue(given).roles
    found: list[LintFinding] = []
    for role in active:
        found += _role_findings(role, pool, catalog)
    found += _blocking(given, pool, catalog)
    found += _unused_engines(given, catalog)
    for model in catalog.models:
        if isinstance(model.vram_gib, Unknown):
            found.append(
                LintFinding(
                    "no_vram",
                    model.id,
                    f"model {model.id} has no vram_gb, so nobody knows where it fits; add it to models.yaml",
                )
            )
    return tuple(found)


def _role_findings(role: PlanRole, pool: Pool, catalog: Catalog) -> Iterator[LintFinding]:
    board, fitting = Board(pool, catalog), Fitting(catalog)
    if catalog.models and not _has_model(role, board, fitting):
        where = "on any GPU that suits it" if role.gpu else "in the RAM of any node"
        text = f"role {role.name}: no model of the catalog for its engines fits {where}"
        yield LintFinding("no_model", role.name, f"{text}; check needs.engine and the vram_gb of its models")
    if role.gpu and role.min_vram_gb > 0:
        below = [item.gpu for item in pool.gpus if item.gpu.memory_gb < role.min_vram_gb]
        card = max(below, key=lambda gpu: gpu.memory_gb, default=None)
        if card is not None and role.min_vram_gb - card.memory_gb <= card.memory_gb * HAIR:
            count = sum(gpu.memory_gb == card.memory_gb for gpu in below)
            name = f" ({card.name})" if card.name else ""
            text = (
                f"role {role.name}: min_vram_gb {number(role.min_vram_gb)} is a hair above the "
                f"{card.memory_gb} GB of {plural(count, 'GPU')}{name}; write that if they are meant"
            )
            yield LintFinding("hair_above", role.name, text)
    on_cpu = not role.gpu or role.cpu_fallback
    known = {engine.name: engine.runs_on_cpu for engine in catalog.engines}
    if on_cpu and role.engines and not any(known.get(engine) for engine in role.engines):
        text = f"role {role.name} may run on CPUs, but {' and '.join(role.engines)} cannot by the catalog"
        yield LintFinding("cpu_engine", role.name, f"{text}; add `cpu: true` to an engine, or another engine")


def _has_model(role: PlanRole, board: Board, fitting: Fitting) -> bool:
    if role.gpu and any(
        fitting.find(role.engines, memory * role.gpus, cc)
        for memory, cc in (board.pool.kinds[kind] for kind in board.suits(role))
    ):
        return True
    if role.gpu and not role.cpu_fallback:
        return not board.suits(role)  # that no GPU suits is told by the plan
    ram = [node.memory_gb for node in board.pool.nodes if not isinstance(node.memory_gb, Unknown)]
    return bool(fitting.find(role.engines, max(ram, default=0), None))


def _blocking(roles: tuple[PlanRole, ...], pool: Pool, catalog: Catalog) -> Iterator[LintFinding]:
    """Roles whose `prefer: largest` costs others a copy."""
    queue = build_queue(roles)
    base = fill(Board(pool, catalog), queue)
    if not base.misses:
        return
    for role in queue.roles:
        if role.prefer != "largest" or not role.gpu or role.share_with is not None:
            continue
        changed = tuple(replace(o, prefer="smallest_fitting") if o.name == role.name else o for o in roles)
        other = fill(Board(pool, catalog), build_queue(changed))
        gained = {name: len(missed) - len(other.misses.get(name, ())) for name, missed in base.misses.items()}
        if sum(map(len, other.misses.values())) < sum(map(len, base.misses.values())):
            names = ", ".join(f"{name} ({count})" for name, count in gained.items() if count > 0)
            text = f"role {role.name}: prefer largest takes GPUs that others need; with smallest_fitting"
            yield LintFinding("largest_blocks", role.name, f"{text} these would have more copies: {names}")


def _unused_engines(roles: tuple[PlanRole, ...], catalog: Catalog) -> Iterator[LintFinding]:
    if any(not role.engines for role in roles):
        return  # a role for any engine may use each
    used = {engine for role in roles for engine in role.engines}
    for engine in catalog.engines:
        if engine.name not in used:
            text = f"engine {engine.name} is named by no role"
            yield LintFinding("unused_engine", engine.name, f"{text}; it may go, or a role lacks it")
