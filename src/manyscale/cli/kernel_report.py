# SPDX-License-Identifier: Apache-2.0
"""The profile of a kernel for the terminal, within 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.cli.console import tables

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from manyscale.gpu import KernelProfile

_BAR = 40  # characters of all of the warps' cycles
_WIDTH = 80
_LEAST_SHOWN = 0.05  # percent
_CAPITALS = {"ipc", "l1", "l2", "dram", "sm"}


def print_profile(profile: KernelProfile, lines: int = 5) -> None:
    """The headline numbers, where warps waited, the hottest lines, and what limits the kernel."""
    from rich.padding import Padding
    from rich.text import Text

    console = tables()
    sections: dict[str, RenderableType] = {
        "Metrics": _headline(profile),
        "Where the cycles of warps went": _stack(profile),
        "Hot lines: their part of these cycles, and what most of it went to": _hot_lines(profile, lines),
        "What limits it": Text(str(profile.limit)),
    }
    for title, content in sections.items():
        console.print(f"\n{title}")
        console.print(Padding(content, (0, 0, 0, 2)), width=min(console.width, _WIDTH))


def profile_data(profile: KernelProfile) -> dict[str, Any]:
    """The same as data."""
    return {
        "metrics": {
            name: {"value": metric.value, "unit": metric.unit} for name, metric in profile.metrics.items()
        },
        "limit": profile.limit.data(),
    }


def _grid(*justify: str) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for how in justify:
        grid.add_column(justify=how, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    return grid


def _headline(profile: KernelProfile) -> Table:
    from rich.text import Text

    from manyscale.gpu.profile import HEADLINE

    cells = []
    for name in HEADLINE:
        value = str(profile.metrics[name])
        if name == "roofline" and profile.metrics[name].value is not None:
            value += f" of {profile.roofline.bound_by}"
        cells.append((Text(_label(name)), Text(value)))
    grid = _grid("left", "left", "left", "left")
    for left, right in zip(cells[::2], cells[1::2], strict=True):
        grid.add_row(*left, *right)
    return grid


def _label(metric: str) -> str:
    words = metric.replace("_per_", " / ").split("_")
    spaced = " ".join(words).split(" ")
    return " ".join(word.upper() if word in _CAPITALS else word for word in spaced).replace(" / ", "/")


def _stack(profile: KernelProfile) -> Table:
    from rich.text import Text

    from manyscale.gpu.metrics import STALLS

    grid = _grid("left", "right", "left")
    for stall in STALLS:
        share = profile[f"stall_{stall.name}"] or 0.0
        if share >= _LEAST_SHOWN:
            grid.add_row(
                Text(stall.label), Text(f"{share:.1f}%"), Text("█" * round(share * _BAR / 100) or "▏")
            )
    return grid


def _hot_lines(profile: KernelProfile, lines: int) -> Table:
    from rich.text import Text

    grid = _grid("right", "left", "left", "left")
    for row in profile.hot_line_rows(lines):
        # SASS, whose instructions begin with capitals, is shown beside its PTX.
        is_machine = row["text"].lstrip("@!")[:1].isupper() and row["ptx_line"] > 0
        text = f"{row['text']} (PTX {row['ptx_line']})" if is_machine else row["text"]
        cells = (f"{row['percent']:.1f}%", row["location"], text, row["reason"])
        grid.add_row(*(Text(_printable(cell)) for cell in cells))
    return grid


def _printable(text: str) -> str:
    """The text without control characters, which names of files may contain."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
