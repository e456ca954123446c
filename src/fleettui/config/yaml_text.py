"""A document as YAML text that every reader takes for the same values."""

from __future__ import annotations

from typing import Any

import yaml

from fleettui.model.written import WrittenNumber


class _Dumper(yaml.SafeDumper):
    """No anchors; numbers stand as they were written."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    WrittenNumber,
    lambda dumper, number: dumper.represent_scalar("tag:yaml.org,2002:float", number.text),
)


def yaml_text(document: Any) -> str:
    """Keys in their order; each innermost list or map on a line of its own, however long."""
    return yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1 << 30
    )
