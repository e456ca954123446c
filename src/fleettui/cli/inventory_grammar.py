"""The grammar of `fleettui inventory collect`."""

from __future__ import annotations

from fleettui.cli.options import positive_seconds
from fleettui.cli.verbs import AddVerb, Convert

_DESCRIPTION = (
    "Measure the hardware of machines over SSH, many side by side: GPUs, CPU, memory, disks. Prints their\n"
    "profiles as YAML and keeps them, dated. Nothing is changed on a machine; one that is not approved is\n"
    "not asked. Progress goes to stderr."
)
_CODES = """exit codes:
  0  every machine was read in full
  1  some were not, or not in full: their last profile stands for them
  2  usage or configuration error, an inventory FILE that is wrong too: nothing was asked, nothing written
  3  unknown machine NAME
  4  no machine could be read

examples:
  fleettui inventory collect -o inventory.yaml
  fleettui inventory collect ada bora --json
  fleettui inventory collect --local"""


def add_inventory_verbs(add_verb: AddVerb, convert: Convert) -> None:
    """`collect`; `convert` makes a reader of values one that argparse can use."""
    collect = add_verb("collect", _DESCRIPTION, _CODES)
    collect.add_argument("names", nargs="*", metavar="NAME", help="only these machines")
    collect.add_argument("--local", action="store_true", help="this computer, without SSH")
    collect.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the profiles there; in a FILE that is there already, other machines and keys of your own "
        "(disabled, cpu_roles, tags, …) stay as they are",
    )
    collect.add_argument("--json", action="store_true", help="a JSON document with profiles and errors")
    collect.add_argument(
        "--deadline",
        metavar="S",
        type=convert(positive_seconds),
        default=60.0,
        help="seconds for each machine (default 60)",
    )
