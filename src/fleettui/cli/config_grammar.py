"""The grammar of `fleettui config path|print|validate|schema`."""

from __future__ import annotations

from fleettui.cli.verbs import AddVerb, add_json

_FINE = "exit codes:\n  0  printed\n  2  usage or configuration error"


def add_config_verbs(add_verb: AddVerb) -> None:
    """The verbs that look at settings; none of them changes anything."""
    path = add_verb(
        "path", "Print where settings, machine files, catalog and state lie, and who says so.", _FINE
    )
    add_json(path)
    printing = add_verb(
        "print", "Print the settings that hold as settings.yaml, with the origin of each as a comment.", _FINE
    )
    add_json(printing)
    validate = add_verb(
        "validate",
        "Check the settings and the catalog, and print all errors at once.",
        "exit codes:\n  0  no error\n  2  at least one error, or a usage error",
    )
    validate.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="check this settings.yaml, models.yaml or roles.yaml alone (default: all, and $FLEETTUI_*)",
    )
    add_json(validate)
    schema = add_verb("schema", "Print a JSON Schema for editors.", _FINE)
    schema.add_argument(
        "kind",
        nargs="?",
        choices=("settings", "machine", "catalog", "roles"),
        default="settings",
        help="of settings.yaml (default), of a machine file, or of the catalog's models.yaml or roles.yaml",
    )
