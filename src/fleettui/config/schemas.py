"""JSON Schema of the files that the operator writes, for editors. Loads pydantic."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fleettui.config.catalog_roles import RolesPart
from fleettui.config.catalog_schema import CatalogPart
from fleettui.config.machine_schema import MachinePart
from fleettui.view.columns import COLUMNS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Pair = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)]
Folder = Annotated[str, Field(min_length=1)]
ColumnName = Annotated[str, Field(json_schema_extra={"enum": [column.key for column in COLUMNS]})]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ThresholdsPart(_Part):
    """From which value on a bar is yellow, and from which red."""

    memory: Pair = Field([70, 90], description="percent")
    utilisation: Pair = Field([10, 75], description="percent")
    temperature: Pair = Field([75, 85], description="°C")


class SettingsPart(_Part):
    """settings.yaml, as config/settings.py checks it."""

    interval_s: float | None = Field(2, ge=0.5, le=3600, description="seconds between polls of a machine")
    machines: Folder | None = Field(None, description="folder of machine files")
    catalog: Folder | None = Field(None, description="folder of the catalog")
    state_dir: Folder | None = Field(None, description="folder of the state database")
    theme: str | None = Field("fleettui-dark", description="colours of the dashboard")
    glyphs: Literal["unicode", "ascii"] | None = Field("unicode", description="signs of the dashboard")
    thresholds: ThresholdsPart | None = Field(None, description="where bars turn yellow and red")
    keys: dict[str, Annotated[str, Field(min_length=1)]] | None = Field(
        None, description="action and its key, as Textual names it"
    )
    columns: Annotated[list[ColumnName], Field(min_length=1)] | None = Field(
        None, description="columns of the fleet's table"
    )
    readonly: bool | None = Field(False, description="refuse every command that changes anything")
    server: Annotated[str, Field(pattern="^(https?://[^ ]+|unix:.+)$")] | None = Field(
        None, description="URL of a running `fleettui serve`, or unix:PATH of its socket"
    )
    server_token_file: Folder | None = Field(None, description="file with the token for that server")
    server_ca_file: Folder | None = Field(
        None, description="certificates that are trusted for that server, instead of the system's"
    )
    history_minutes: float | None = Field(60, ge=1, le=1440, description="length of the graphs")


def settings_schema() -> dict[str, Any]:
    """The schema of settings.yaml."""
    return _document(SettingsPart.model_json_schema(), "fleettui: settings.yaml")


def catalog_schema() -> dict[str, Any]:
    """The schema of models.yaml. Keys that fleettui does not know are allowed."""
    schema = CatalogPart.model_json_schema()
    for name, section in schema["properties"].items():
        schema["properties"][name] = {"anyOf": [section, {"type": "null"}]}
    return _document(schema, "fleettui: models.yaml of the catalog")


def roles_schema() -> dict[str, Any]:
    """The schema of roles.yaml. Keys that fleettui does not know are allowed."""
    return _document(RolesPart.model_json_schema(), "fleettui: roles.yaml of the catalog")


def machine_schema() -> dict[str, Any]:
    """The schema of a machine file. Keys that fleettui does not know are allowed."""
    schema = MachinePart.model_json_schema()
    properties = schema["properties"]
    parts = schema["$defs"]
    del parts["SshPart"]["properties"]["is_local"]  # of the word `local`, which stands for the whole map
    properties["ssh"]["anyOf"].insert(0, {"const": "local"})
    properties["nvidia_smi"]["anyOf"].insert(0, {"type": "string", "pattern": "^/.*nvidia-smi$"})
    for key in ("hardware", "models"):
        properties[key] = {"anyOf": [_without_title(properties[key]), {"type": "null"}]}
    return _document(schema, "fleettui: a machine file")


def _document(schema: dict[str, Any], title: str) -> dict[str, Any]:
    """The schema without the titles that pydantic makes of names."""
    plain: dict[str, Any] = _without_title(schema)
    return {"$schema": DIALECT, "title": title, **plain}


def _without_title(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_title(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _without_title(item) for name, item in value.items()}
        if key in ("properties", "$defs")
        else _without_title(value)
        for key, value in node.items()
        if key not in ("title",)
    }
