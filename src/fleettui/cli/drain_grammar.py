"""The grammar of `fleettui drain start|status|cancel` and `fleettui undrain`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.options import positive_count, positive_seconds, seconds
from fleettui.cli.verbs import AddVerb, Convert, add_json
from fleettui.model.drain import read_forced_class

START = (
    "Move what MACHINE serves to other machines and unload it, so that it can be rebooted without anyone\n"
    "noticing. What would be done is shown first, always; without --yes you are asked to type the name.\n"
    "Nothing is unloaded before another machine was seen to serve it. Progress goes to stderr.\n"
    "Ctrl+C leaves the drain as it stands, to whoever goes on with it: a dashboard, `drain status --follow`."
)
START_CODES = """exit codes:
  0  drained; with --dry-run: the preview was printed
  1  blocked, failed or cancelled; or refused, because copies would be lost (--force-class)
  2  usage or configuration error; no terminal to ask on and no --yes: nothing was done
  3  unknown MACHINE: nothing was done about the others either
  4  MACHINE, or every machine, gave no data: nobody knows what would have to be moved

classes of copies:
  COVERED      another machine serves it already
  MOVE         is loaded on another machine first; MOVE+EVICTS: idle copies there have to go for it
  DEGRADED     fits only partly into VRAM, or with a smaller context (--accept-degraded keeps it so)
  PULL         the target has no files of it (--allow-pull)
  LAST COPY    no machine takes it now, others have its files: cold there (--force-class last-copy)
  CANNOT       no machine takes it (--force-class cannot)
  UNMANAGED    cannot be unloaded from here: it stays, and the drain ends blocked (--force-class unmanaged)

examples:
  fleettui drain start ada --dry-run
  fleettui drain start ada --reason 'PSU swap' --until 2h
  fleettui drain start ada bora --reason kernel --serial 1 --yes"""
STATUS = (
    "Show drains: how far each copy is, what it waits for, who works on it. --follow goes on until the work\n"
    "has ended, and takes over a drain that nobody works on any more; without it nothing is done."
)
STATUS_CODES = """exit codes:
  0  printed; with --follow: drained
  1  with --follow: blocked, failed or cancelled
  2  usage or configuration error
  3  unknown MACHINE"""
CANCEL = (
    "End the work of a drain: no new steps; a load under way ends first. What was moved stays where it is,\n"
    "and MACHINE takes no requests until `fleettui undrain`."
)
UNDRAIN = (
    "Bring machines back: routing and plans take them from now on. --return moves back what the drain moved\n"
    "away, each copy loaded there before it is unloaded where it went."
)
_CODES = """exit codes:
  0  done, or it stood so already
  1  {negative}
  2  usage or configuration error
  3  unknown MACHINE: nothing was done about the others either"""
UNDRAIN_CODES = _CODES.format(negative="with --return: some copies could not be moved back")


def add_drain_verbs(add_verb: AddVerb, convert: Convert) -> None:
    """`start`, `status` and `cancel`; `convert` makes a reader of values one that argparse can use."""
    _add_start(add_verb("start", START, START_CODES), convert)
    status = add_verb("status", STATUS, STATUS_CODES)
    status.add_argument("names", nargs="*", metavar="MACHINE", help="only these machines")
    status.add_argument("--follow", action="store_true", help="go on until the work has ended")
    status.add_argument("--json", action="store_true", help="a JSON document; with --follow one a line")
    cancel = add_verb("cancel", CANCEL, _CODES.format(negative="MACHINE has no drain to cancel"))
    cancel.add_argument("names", nargs="+", metavar="MACHINE", help="names of machines")
    cancel.add_argument("--now", action="store_true", help="give up a load under way")
    cancel.add_argument("--eligible", action="store_true", help="take requests again at once")
    add_json(cancel)


def add_undrain_options(parser: ArgumentParser) -> None:
    """Of `fleettui undrain`."""
    parser.add_argument("names", nargs="+", metavar="MACHINE", help="names of machines")
    parser.add_argument("--return", action="store_true", dest="returns", help="move back what was moved away")
    add_json(parser)


def _add_start(start: ArgumentParser, convert: Convert) -> None:
    start.add_argument("names", nargs="+", metavar="MACHINE", help="machines to empty, planned together")
    start.add_argument(
        "--reason", metavar="TEXT", help="why; shown wherever the machine is; only --dry-run goes without"
    )
    start.add_argument("--dry-run", action="store_true", help="print what would be done, and do nothing")
    add_json(start)
    start.add_argument("--yes", action="store_true", help="do not ask")
    start.add_argument(
        "--force-class",
        dest="forced",
        metavar="CLASS",
        action="append",
        default=[],
        type=convert(read_forced_class),
        help="go on though there are such copies: last-copy, cannot, unmanaged (repeatable)",
    )
    start.add_argument("--allow-pull", action="store_true", help="targets may fetch files they have not")
    start.add_argument(
        "--accept-degraded",
        action="store_true",
        help="keep copies that lie partly in main memory there, or have a smaller context",
    )
    start.add_argument(
        "--keep-context",
        action="store_true",
        help="load with the context they have now (default: with the target's own; Ollama loads a copy anew "
        "for a request that names another)",
    )
    start.add_argument("--probe", action="store_true", help="have targets generate one token first")
    start.add_argument(
        "--idle-wait",
        metavar="S",
        type=convert(seconds),
        default=60.0,
        help="how long a copy at work is waited for before its unload; requests in work end all the same "
        "(default 60; 0: until it is idle)",
    )
    start.add_argument(
        "--deadline",
        metavar="S",
        type=convert(positive_seconds),
        help="then the drain is blocked, never forced: 30m, 2h (default: none)",
    )
    start.add_argument("--to", metavar="MACHINE", action="append", default=[], help="only there (repeatable)")
    start.add_argument(
        "--skip", metavar="MODEL", action="append", default=[], help="leave it where it is (repeatable)"
    )
    start.add_argument(
        "--until",
        metavar="WHEN",
        help="when the work should be over: 2h, 30m, 1d, 14:00, 2026-12-01T08:00; then it shows as overdue",
    )
    start.add_argument(
        "--serial",
        metavar="N",
        type=convert(positive_count),
        default=0,
        help="empty N machines at a time; all are taken out of routing first (default: all at once)",
    )
