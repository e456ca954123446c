"""`fleettui logs`: what a machine's kernel, engines and NVIDIA services wrote, read over SSH."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from fleettui.cli import diagnostics, output
from fleettui.cli.colors import paint
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_NO_TELEMETRY, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.names import unknown_name
from fleettui.cli.serving import run_serving
from fleettui.config.machine_folder import load_machines
from fleettui.fleet.machine_log import LogQuery, LogUnavailable, follow_log, read_log
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_gate import TrustGate
from fleettui.model.log import LogLine
from fleettui.model.machine import Machine
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.net.link import Link
from fleettui.net.settings import ConnectorSettings
from fleettui.view.log_lines import line_document, log_document, log_line_cells, log_rows
from fleettui.view.text import clean


def logs_command(arguments: Namespace) -> int:
    """Print the log of one machine, or follow it until Ctrl+C."""
    folders = resolve_folders(arguments)
    machine = _find(arguments.name, folders)
    query = LogQuery(int(arguments.since), arguments.unit)
    work = _follow if arguments.follow else _read
    try:
        return run_serving(_with_link(machine, folders, work, query, arguments.json))
    except LinkError as error:
        raise CommandError(f"{machine.name}: {error.text}", exit_code=EXIT_NO_TELEMETRY) from None
    except LogUnavailable as error:
        hints = (clean(error.hint),) if error.hint else ()
        raise CommandError(f"{machine.name}: {clean(error.text)}", *hints, exit_code=EXIT_NEGATIVE) from None


def _find(name: str, folders: Folders) -> Machine:
    files = load_machines(folders.machines_dir)
    machine = files.find(name)
    if machine is None:
        raise unknown_name(name, files, folders.machines_dir)
    return machine


Work = Callable[[Link, "_Printer", LogQuery], Awaitable[int]]


async def _with_link(machine: Machine, folders: Folders, work: Work, query: LogQuery, is_json: bool) -> int:
    """One login, by what was decided about the machine's host key; closed whatever happens."""
    connector = Connector(ConnectorSettings.from_environment())
    await connector.warm()
    gate = TrustGate(TrustBook(folders.state_dir, folders.machines_dir), connector, time.time)
    await gate.load()
    link = gate.link_for(machine)
    lost: asyncio.Future[LinkError] = asyncio.get_running_loop().create_future()
    try:
        await link.open(lambda error: None if lost.done() else lost.set_result(error))
        try:
            return await work(link, _Printer(machine.name, folders, is_json=is_json), query)
        except LogUnavailable:
            if lost.done():  # it says more than the end of the session
                raise lost.result() from None
            raise
    finally:
        await link.close()
        connector.close()


class _Printer:
    """Lines on stdout, in colours where they are seen; notes on stderr."""

    def __init__(self, name: str, folders: Folders, *, is_json: bool) -> None:
        self.name = name
        self.is_json = is_json
        self.utc_offset_s = time.localtime().tm_gmtoff
        self.has_color = output.is_terminal() and folders.appearance.has_color

    def note(self, text: str) -> None:
        diagnostics.say(f"{self.name}: {clean(text)}")

    def line(self, line: LogLine) -> None:
        if self.is_json:
            document = {"schema": 1, "machine": self.name, **line_document(line)}
            output.write_document(document, is_compact=True)
        else:
            cells = log_line_cells(line, self.utc_offset_s)
            output.write_lines([paint(cells, has_color=self.has_color)])


async def _read(link: Link, printer: _Printer, query: LogQuery) -> int:
    log = await read_log(link, query)
    if printer.is_json:
        output.write_document(
            log_document(
                printer.name,
                log.lines,
                since_s=query.since_s,
                unit=query.unit,
                source=log.source,
                notes=log.notes,
            )
        )
        return EXIT_OK
    for note in log.notes:
        printer.note(note)
    rows = log_rows(log.lines, printer.utc_offset_s)
    output.write_lines(paint(row, has_color=printer.has_color) for row in rows)
    if not log.lines:
        what = query.unit or "kernel, engines and NVIDIA's services"
        printer.note(f"no line of {what} in this time")
    return EXIT_OK


async def _follow(link: Link, printer: _Printer, query: LogQuery) -> int:
    async with aclosing(follow_log(link, query, printer.note)) as lines:
        async for line in lines:
            printer.line(line)
    return EXIT_OK
