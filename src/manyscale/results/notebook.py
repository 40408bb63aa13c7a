# SPDX-License-Identifier: Apache-2.0
"""How results show themselves in notebooks: tables and plots, without a script."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MOST_ROWS = 20


class NotebookView:
    """A result that notebooks show as tables and plots; what they are says `_notebook`."""

    def _notebook(self) -> Iterable[str]:
        """Pieces of HTML, one below the other."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return "".join(self._notebook())

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, str]:
        bundle = {"text/plain": repr(self), "text/html": self._repr_html_()}
        wanted = set(bundle) if include is None else set(include)
        return {kind: text for kind, text in bundle.items() if kind in wanted - set(exclude or ())}


def facts_table(caption: str, facts: Mapping[str, Any]) -> str:
    """Names and values."""
    return rows_table(caption, (), facts.items())


def headline_table(caption: str, headline: Mapping[str, Mapping[str, Any]]) -> str:
    """Headline numbers with their units."""
    from manyscale.results.run import show

    return facts_table(caption, {name: show(dict(entry)) for name, entry in headline.items()})


def rows_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; of many rows the first."""
    found = [tuple(row) for row in rows]
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in found[:_MOST_ROWS]
    )
    more = f" (the first {_MOST_ROWS} of {len(found):,} rows)" if len(found) > _MOST_ROWS else ""
    return (
        f"<table><caption>{html.escape(caption + more)}</caption>"
        + (f"<thead><tr>{head}</tr></thead>" if head else "")
        + f"<tbody>{body}</tbody></table>"
    )


def plot(svg: str, width: int = 640) -> str:
    """A chart in SVG, which notebooks show as it is."""
    return f'<div style="max-width:{width}px">{svg}</div>'


def _shown(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.6g}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
