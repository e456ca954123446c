"""Our `Literal` is the words at run time and the real thing for pydantic."""

from __future__ import annotations

import pydantic
import pytest

from fleettui.model.literal import Literal

Colour = Literal["red", "green"]


def test_its_words() -> None:
    assert Colour.__args__ == ("red", "green")


def test_pydantic_checks_the_words() -> None:
    class Lamp(pydantic.BaseModel):
        colour: Colour

    assert Lamp.model_validate({"colour": "red"}).colour == "red"
    with pytest.raises(pydantic.ValidationError, match="'red' or 'green'"):
        Lamp.model_validate({"colour": "blue"})
