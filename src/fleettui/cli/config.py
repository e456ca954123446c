"""`fleettui config`: where settings lie, what holds, what is wrong, and their schema."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_OK, EXIT_USAGE, CommandError
from fleettui.config.catalog_folder import MODELS_FILE, ROLES_FILE, load_catalog_files
from fleettui.config.effective import EffectiveSetting, effective_settings, settings_lines
from fleettui.config.paths import resolve_catalog_dir, resolve_settings_file
from fleettui.config.settings import Settings, SettingsLayers, line_finder, load_layers, variable_of
from fleettui.model.machine import ConfigProblem
from fleettui.view.problems import problem_line

_OPTIONS = {"interval": "interval_s", "machines": "machines", "catalog": "catalog", "state_dir": "state_dir",
            "readonly": "readonly", "server": "server"}  # fmt: skip
"""Options of the command line, and the setting that each one beats."""


def config_command(arguments: Namespace) -> int:
    """Run `config path|print|validate|schema`."""
    verbs = {"path": _path, "print": _print, "validate": _validate, "schema": _schema}
    return verbs[arguments.verb](arguments)


def _path(arguments: Namespace) -> int:
    """Where everything lies; a broken settings file is named on stderr and is no reason not to answer."""
    path = resolve_settings_file()
    layers = load_layers(path)
    rows = _places(path, _effective(arguments, layers, path))
    if arguments.json:
        document = {name: {"path": place, "origin": origin, "exists": exists}
                    for name, place, origin, exists in rows}  # fmt: skip
        output.write_document({"schema": 1, **document, "errors": _error_list(layers.problems)})
        return EXIT_OK
    width = max(len(place) for _, place, _, _ in rows)
    output.write_lines(
        f"{name:<9} {place:<{width}}  {origin}{'' if exists else ', not there'}"
        for name, place, origin, exists in rows
    )
    diagnostics.say_all(problem_line(problem) for problem in layers.problems)
    return EXIT_OK


def _places(path: str, settings: Sequence[EffectiveSetting]) -> list[tuple[str, str, str, bool]]:
    """Name, path, where it was said, whether it is there."""
    variable = "$XDG_CONFIG_HOME" if os.environ.get("XDG_CONFIG_HOME") else "default"
    rows = [("settings", path, variable, os.path.isfile(path))]  # noqa: PTH113
    by_key = {item.key: item for item in settings}
    for key, name in (("machines", "machines"), ("catalog", "catalog"), ("state_dir", "state")):
        item = by_key[key]
        rows.append((name, item.value, item.source, os.path.isdir(item.value)))  # noqa: PTH112
    return rows


def _print(arguments: Namespace) -> int:
    path = resolve_settings_file()
    layers = load_layers(path)
    problems = (*layers.problems, *_look_problems(layers, path))
    if problems:
        raise CommandError("the settings are wrong", *(problem_line(problem) for problem in problems))
    settings = _effective(arguments, layers, path)
    if arguments.json:
        body = {
            item.key: {"value": item.value, "origin": item.origin, "where": item.where or None}
            for item in settings
        }
        output.write_document({"schema": 1, "file": path, "settings": body})
    else:
        output.write_lines(settings_lines(settings))
    return EXIT_OK


def _effective(arguments: Namespace, layers: SettingsLayers, path: str) -> tuple[EffectiveSetting, ...]:
    options = {key: getattr(arguments, name, None) for name, key in _OPTIONS.items()}
    return effective_settings(
        layers, path, {key: value for key, value in options.items() if value is not None}
    )


def _validate(arguments: Namespace) -> int:
    """Everything wrong at once, in the catalog too; a FILE is judged alone, without the environment."""
    path = os.path.abspath(arguments.file) if arguments.file else resolve_settings_file()  # noqa: PTH100
    exists = os.path.exists(path)  # noqa: PTH110 - a pipe too: `config validate <(…)`
    if arguments.file and not exists:
        raise CommandError(f"{path}: there is no such file", "see: fleettui config path")
    if os.path.basename(path) in (MODELS_FILE, ROLES_FILE):  # noqa: PTH119
        told = load_catalog_files(os.path.dirname(path))  # noqa: PTH120
        problems = tuple(problem for problem in told.problems if problem.file == path)
        return _tell_verdict(arguments, path, exists, problems)
    layers = load_layers(path, {} if arguments.file else None)
    problems = (*layers.problems, *_look_problems(layers, path))
    if arguments.file:
        return _tell_verdict(arguments, path, exists, problems)
    folder = resolve_catalog_dir(getattr(arguments, "catalog", None), layers.merged().catalog)
    told = load_catalog_files(folder)
    files = [file for file in (told.catalog.file, told.catalog.roles_file) if file]
    return _tell_verdict(arguments, path, exists, (*problems, *told.problems), files)


def _tell_verdict(
    arguments: Namespace, path: str, exists: bool, problems: Sequence[ConfigProblem], also: Sequence[str] = ()
) -> int:
    if arguments.json:
        output.write_document({"schema": 1, "file": path, "exists": exists, "errors": _error_list(problems)})
    elif problems:
        output.write_lines(problem_line(problem) for problem in problems)
    else:
        lines = [f"{path}: fine" if exists else f"{path}: not there; every setting has its default"]
        output.write_lines([*lines, *(f"{file}: fine" for file in also)])
    if not problems:
        return EXIT_OK
    count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
    pages = "docs/catalog.md" if problems[0].is_of_catalog else "docs/settings.md"
    diagnostics.say_error("config validate", count, f"keys and values: {pages}")
    return EXIT_USAGE


def _look_problems(layers: SettingsLayers, path: str) -> Iterator[ConfigProblem]:
    """Names that only the dashboard knows: themes, actions, keys. Loads it only where one is set."""
    settings = layers.merged()
    if settings.theme is None and not settings.keys:
        return
    lines = line_finder(path)
    for below, text in look_faults(settings):
        is_environment = below[0] in layers.environment
        key = ".".join(below)
        where = f"${variable_of(below[0])}" if is_environment else path
        message = text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")
        yield ConfigProblem(where, None if is_environment else lines(below), key, message)


def look_faults(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Path of the setting and what is wrong with it, among theme and keys."""
    from fleettui.tui.key_check import key_problems
    from fleettui.tui.look_check import look_problems
    from fleettui.tui.port import Look

    for sentence in look_problems(Look(theme=settings.theme)):
        yield ("theme",), sentence.partition(": ")[2]
    for action, text in key_problems(settings.keys):
        yield ("keys", action), text


def _error_list(problems: Sequence[ConfigProblem]) -> list[dict[str, object]]:
    return [
        {"file": item.file, "line": item.line, "key": item.key, "message": item.message} for item in problems
    ]


def _schema(arguments: Namespace) -> int:
    from fleettui.config.schemas import catalog_schema, machine_schema, roles_schema, settings_schema

    schemas = {
        "settings": settings_schema,
        "machine": machine_schema,
        "catalog": catalog_schema,
        "roles": roles_schema,
    }
    output.write_document(schemas[arguments.kind]())
    return EXIT_OK
