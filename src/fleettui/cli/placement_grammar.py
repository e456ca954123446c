"""The grammar of `fleettui placement plan`."""

from __future__ import annotations

from fleettui.cli.options import positive_seconds, seconds
from fleettui.cli.verbs import AddVerb, Convert

_DESCRIPTION = (
    "Plan which role of the catalog belongs on which GPU, and say why where there is no place. Nothing is\n"
    "loaded, moved or changed on a machine: a plan is a target. The same input gives the same bytes."
)
_CODES = """exit codes:
  0  planned, even where copies have no place
  1  --strict: copies have no place (with --lint: there are findings); --detailed-exitcode: something is to
     be done; --check n-1: a machine cannot be spared
  2  usage or configuration error, an error in the catalog too
  3  unknown MACHINE or GPU
  4  no machine gave usable data, and none has a stored profile

examples:
  fleettui placement plan
  fleettui placement plan --json > plan.json
  fleettui placement plan --diff-loaded
  fleettui placement plan --without ada --optimal
  fleettui placement plan --inventory inventory.yaml --check n-1"""


def add_placement_verbs(add_verb: AddVerb, convert: Convert) -> None:
    """`plan`; `convert` makes a reader of values one that argparse can use."""
    plan = add_verb("plan", _DESCRIPTION, _CODES)
    source = plan.add_mutually_exclusive_group()
    source.add_argument(
        "--inventory", metavar="FILE", help="plan for the machines of this inventory; no machine is asked"
    )
    source.add_argument("--stored", action="store_true", help="plan by stored profiles; no machine is asked")
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a JSON document; printed on failure too")
    form.add_argument("--yaml", action="store_true", help="the same document as YAML")
    plan.add_argument(
        "--optimal", action="store_true", help="as many copies as there can be, in order of priority"
    )
    plan.add_argument("--keep", metavar="FILE", help="leave copies where the plan in FILE has them")
    answer = plan.add_mutually_exclusive_group()
    answer.add_argument("--diff", metavar="FILE", help="print what changes from the plan in FILE to this one")
    answer.add_argument(
        "--diff-loaded", action="store_true", help="print what changes from what is loaded now to the plan"
    )
    answer.add_argument("--n-1", action="store_true", help="print what the loss of each machine would cost")
    answer.add_argument("--check", choices=("n-1",), help="the same table; exit 1 where a loss leaves a gap")
    answer.add_argument("--lint", action="store_true", help="print what the catalog allows and hardly means")
    plan.add_argument("--strict", action="store_true", help="exit 1 where copies have no place")
    plan.add_argument(
        "--detailed-exitcode",
        action="store_true",
        help="with --diff or --diff-loaded: exit 1 where something is to be done",
    )
    plan.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="MACHINE",
        help="as if this machine were not there (repeatable)",
    )
    plan.add_argument(
        "--disable",
        action="append",
        default=[],
        metavar="MACHINE:IDX",
        type=convert(gpu_of_machine),
        help="as if this GPU were out of plans (repeatable)",
    )
    plan.add_argument(
        "--with",
        dest="more",
        action="append",
        default=[],
        metavar="FILE",
        help="as if the machines of this inventory were there too (repeatable)",
    )
    plan.add_argument(
        "--include-unavailable",
        action="store_true",
        help="plan machines too that are pending, in maintenance, draining or drained",
    )
    plan.add_argument(
        "--max-age",
        metavar="S",
        type=convert(seconds),
        help="oldest data to plan by; 0 asks now (default: 2 intervals of whoever stored it)",
    )
    plan.add_argument(
        "--deadline",
        metavar="S",
        type=convert(positive_seconds),
        default=10.0,
        help="seconds to wait for machines when they are asked (default 10)",
    )


def gpu_of_machine(text: str) -> tuple[str, int]:
    """(`ada`, 1) of `ada:1`."""
    name, _, index = text.rpartition(":")
    if not name or not (index.isascii() and index.isdigit()) or len(index) > 5:
        raise ValueError(f"{text!r} is not a machine and the number of its GPU, as in ada:1")
    return name, int(index)
