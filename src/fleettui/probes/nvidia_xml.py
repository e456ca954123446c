"""The lines of `nvidia-smi -q -x`, whole or cut down: one element a line, read without an XML library.

A line scanner has no entities to expand and no depth to run out of, and what is no line of this document is
passed over. Form: netdata's and nvidia_gpu_exporter's captures, drivers 510 to 610.
"""

from __future__ import annotations

import re

_MAX_BYTES = 8 << 20
_MAX_LINES = 100_000
_MAX_DEPTH = 12
_MAX_CARDS = 256
_MAX_PARTS = 64
_LINE = re.compile(
    r"<(/?)([A-Za-z_][A-Za-z0-9_]{0,79})(?: id=\"([^\"<>]{0,80})\")?[^<>\"]{0,40}>(?:([^<>]{0,300})</\2>)?"
)


_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


class XmlNode:
    """One `<gpu>` or one `<mig_device>`: the texts of its elements by path, `fb_memory_usage/total`."""

    __slots__ = ("parts", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.parts: list[XmlNode] = []
        """MIG instances of a card."""


def scan_log(payload: bytes) -> list[XmlNode] | None:
    """The cards of the document; None for what is none, is cut off, declares entities or is over 8 MiB."""
    if len(payload) > _MAX_BYTES:
        return None
    text = payload.decode("utf-8", "replace")
    if "<nvidia_smi_log>" not in text or "</nvidia_smi_log>" not in text or "<!ENTITY" in text:
        return None
    cards: list[XmlNode] = []
    driver = None
    node: XmlNode | None = None
    card: XmlNode | None = None
    path: list[str] = []
    for raw in text.split("\n", _MAX_LINES):
        found = _LINE.fullmatch(raw.strip())
        if found is None:
            continue
        closing, tag, bus_id, body = found.groups()
        if closing:
            if tag == "gpu":
                card = node = None
            elif tag == "mig_device":
                node, path = card, []
            elif path and path[-1] == tag:
                path.pop()
        elif body is not None:
            if node is not None:
                node.texts.setdefault("/".join([*path, tag]), _unescape(body.strip()))
            elif tag == "driver_version":
                driver = body.strip()
        elif tag == "gpu":
            card = node = XmlNode()
            path = []
            if bus_id:
                card.texts["@id"] = bus_id
            if driver is not None:
                card.texts["driver_version"] = driver
            if len(cards) < _MAX_CARDS:
                cards.append(card)
        elif tag == "mig_device" and card is not None:
            node, path = XmlNode(), []
            if len(card.parts) < _MAX_PARTS:
                card.parts.append(node)
        elif node is not None and tag != "mig_devices" and len(path) < _MAX_DEPTH:
            path.append(tag)
    return cards


def _unescape(text: str) -> str:
    if "&" in text:
        for entity, char in _ENTITIES:
            text = text.replace(entity, char)
    return text
