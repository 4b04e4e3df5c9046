"""Flags described once as a dataclass are flags of every command that takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from quantgate.cli.flag_groups import takes_flag_groups

_seen: list[object] = []


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(min=1, help="How wide.")] = 3
    unit: Annotated[Literal["cm", "inch"], typer.Option()] = "cm"


@takes_flag_groups
def draw(
    name: Annotated[str, typer.Argument()], *, size: Size, loud: Annotated[bool, typer.Option("--loud")] = False
) -> None:
    """Draw.

    Example: draw x
    """
    _seen.append((name, size, loud))


app = typer.Typer()
app.command()(draw)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x"], ("x", Size(), False)),
        (["x", "--width", "9", "--loud"], ("x", Size(9), True)),
        (["x", "--unit", "inch"], ("x", Size(unit="inch"), False)),
    ],
)
def test_the_command_gets_the_group_that_its_flags_make(arguments: list[str], expected: object) -> None:
    _seen.clear()
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert _seen == [expected]


def test_a_flags_own_limits_hold_and_the_help_tells_it() -> None:
    assert CliRunner().invoke(app, ["x", "--width", "0"]).exit_code == 2
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "How wide." in shown
    assert "Draw." in shown


def test_called_as_a_function_it_takes_flags_by_their_names() -> None:
    _seen.clear()
    draw("x", width=4)
    assert _seen == [("x", Size(4), False)]
    with pytest.raises(TypeError, match="depth"):
        draw("x", depth=4)
