# SPDX-License-Identifier: Apache-2.0
"""`manyscale validate`: how far the simulator is from published measurements and from other simulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyscale.cli.console import emit_json, say
from manyscale.cli.listing import print_table
from manyscale.cli.options import Force, Json, Quiet, complete_preset
from manyscale.errors import InputError

if TYPE_CHECKING:
    from manyscale.validation import Row

commands = typer.Typer()

_TITLES = {
    "gpu-micro": "microbenchmarks on a GPU beside hardware",
    "gpu-apps": "programs on a GPU beside a V100 (hardware)",
    "gpu-clocks": "a GPU at other clocks beside the simulations of SST-GPU",
    "gpu-programs": "kernels of public suites beside a Quadro GV100 (hardware)",
    "gpu-mix": "instruction classes of LULESH's largest kernels beside a V100 (hardware)",
    "cpu": "processors beside what is published",
    "elastic": "replayed traces beside detailed runs",
    "network": "networks beside other simulators",
    "projection": "projections from one node beside detailed simulations of all nodes",
    "uvm": "unified memory beside a GTX 1080 Ti and another simulator",
}
_COLUMNS = ("name", "simulated", "reference", "unit", "error %", "use", "source")
_COLUMNS_OF_BOTH = ("name", "reference", "unit", "PTX", "error %", "SASS", "error %", "use")
_USES = ("test", "calibrated", "other code")  # the first are the headline
BEGIN = "<!-- correlation tables: written by make validation -->"
END = "<!-- end of the correlation tables -->"


@commands.command()
def validate(
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="One validation: gpu-micro, gpu-apps, gpu-clocks, gpu-programs, gpu-mix, cpu, elastic, network, "
            "projection or uvm; all without it.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME|FILE",
            help="A preset's name or a TOML file; without it, each table has the machine of its references.",
            autocompletion=complete_preset,
        ),
    ] = None,
    isa: Annotated[
        str,
        typer.Option(
            "--isa",
            metavar="FORM",
            help="How kernels of the GPU validations run: ptx, sass, auto, or both beside each other.",
        ),
    ] = "auto",
    programs: Annotated[
        Path | None,
        typer.Option(
            "--programs",
            metavar="DIR",
            help="Programs that you have built, in DIR/bin, with inputs in DIR/data: gpu-programs and gpu-mix need "
            "them, gpu-apps and gpu-clocks then have the report's own programs too.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            help="Write the tables to this page, between its marks for them, or as a new one.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write them as an HTML page with charts."),
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the simulator with published measurements and with other simulators: every correlation table.

    Each row has its error, and says whether a parameter was calibrated with its reference or it is a test. Below a
    table are the mean and the largest error of both, and the correlation of what was simulated with its reference. The
    test rows are the headline. Another machine is compared with the same measurements. Processors, networks and unified
    memory have machines of their own.
    """
    from manyscale import validation
    from manyscale.gpu.isa import isa_of

    if markdown is not None:
        _page_around(markdown)  # before the work, so that a wrong name costs none
    if report is not None:
        from manyscale.report.page import PAGE
        from manyscale.results.files import check_output

        check_output(report, PAGE, force=force)
    found: dict[str, list[Row]] = {}
    pages: dict[str, str] = {}
    if isa == "both":
        forms_of = [
            name for name in validation.FORMS if programs is not None or name not in validation.NEED_PROGRAMS
        ]
        for name in forms_of if only is None else [only]:
            forms = _both_forms(name, machine, programs, json)
            found.update({f"{name} ({form})": rows for form, rows in forms.items()})
            pages[name] = _markdown_of_both(name, forms["ptx"], forms["sass"])
    for name, rows in (
        []
        if isa == "both"
        else validation.tables(only, machine, isa_of(isa), programs, lambda text: say(text, quiet=quiet))
    ):
        found[name] = rows
        pages[name] = _markdown(name, rows)
        if not json:
            print_table(_TITLES.get(name, name), _COLUMNS, [_cells(row) for row in rows])
            typer.echo(_summary(rows))
    everything = [row for rows in found.values() for row in rows]
    if markdown is not None:
        _write_markdown(markdown, pages)
        say(f"Wrote {len(pages)} tables to {markdown}", quiet=quiet or json)
    if report is not None:
        from manyscale.report.validation_page import validation_page

        validation_page({_TITLES.get(name, name): rows for name, rows in found.items()}).write(
            report, force=force
        )
        say(f"Wrote {report}", quiet=quiet or json)
    if json:
        emit_json(
            {
                "rows": [_data(name, row) for name, rows in found.items() for row in rows],
                **_errors(validation.headline_rows(everything)),
                "tables": {name: _totals(rows) for name, rows in found.items()},
            }
        )
    elif len(found) > 1:
        typer.echo(f"all {len(everything)} rows: {_summary(everything, correlation=False)}")


def _both_forms(name: str, machine: str | None, programs: Path | None, quiet: bool) -> dict[str, list[Row]]:
    """One validation with its kernels as PTX and as SASS, errors beside each other."""
    from manyscale import validation
    from manyscale.gpu.isa import isa_of

    if name not in validation.FORMS:
        raise InputError(
            f"'{name}' runs no kernels in two forms; those that do: {', '.join(validation.FORMS)}"
        )
    rows = {isa: validation.validate(name, machine, isa_of(isa), programs) for isa in ("ptx", "sass")}
    if not quiet:
        print_table(
            _TITLES.get(name, name),
            _COLUMNS_OF_BOTH,
            [_cells_of_both(ptx, sass) for ptx, sass in zip(rows["ptx"], rows["sass"], strict=True)],
        )
        for isa, title in (("ptx", "PTX"), ("sass", "SASS")):
            typer.echo(f"{title}: {_summary(rows[isa])}")
    return rows


def _cells_of_both(ptx: Row, sass: Row) -> tuple[str, ...]:
    return (
        *(ptx.name, _number(ptx.reference), ptx.unit),
        *(_number(ptx.simulated), f"{ptx.error_percent:+.1f}"),
        *(_number(sass.simulated), f"{sass.error_percent:+.1f}", sass.use),
    )


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (_number(row.simulated), _number(row.reference))
    return (row.name, *numbers, row.unit, f"{row.error_percent:+.1f}", row.use, row.source)


def _data(name: str, row: Row) -> dict[str, Any]:
    return {
        "validation": name,
        "name": row.name,
        "simulated": row.simulated,
        "reference": row.reference,
        "unit": row.unit,
        "error_percent": row.error_percent,
        "use": row.use,
        "source": row.source,
    }


def _totals(rows: Sequence[Row]) -> dict[str, Any]:
    from manyscale import validation

    return {
        "rows": len(rows),
        **_errors(validation.headline_rows(rows)),
        **{use: _errors(found) for use in _USES if (found := [row for row in rows if row.use == use])},
        "correlation": validation.correlations(rows),
    }


def _errors(rows: Sequence[Row]) -> dict[str, float]:
    from manyscale import validation

    return {
        "mean_error_percent": validation.mean_error_percent(rows),
        "max_error_percent": validation.max_error_percent(rows),
    }


def _summary(rows: Sequence[Row], *, correlation: bool = True) -> str:
    from manyscale import validation

    parts = []
    for use in _USES:
        found = [row for row in rows if row.use == use]
        if found:
            mean, largest = validation.mean_error_percent(found), validation.max_error_percent(found)
            parts.append(f"of {len(found)} {use} rows mean {mean:.1f}%, max {largest:.1f}%")
    text = "absolute error " + "; ".join(parts)
    coefficients = validation.correlations(rows) if correlation else {}
    if coefficients:
        text += "; correlation: " + ", ".join(f"{value:.4f} ({unit})" for unit, value in coefficients.items())
    return text


def _write_markdown(path: Path, tables: Mapping[str, str]) -> None:
    """Replaces what is between the marks of the page; only the tables that were made again, if not all were."""
    before, kept, after = _page_around(path)
    kept.update(tables)
    order = [name for name in _TITLES if name in kept] + [name for name in kept if name not in _TITLES]
    inside = "\n".join(kept[name] for name in order)
    text = f"{before}{BEGIN}\n\n{inside}\n{END}{after}"
    from manyscale.results.files import cannot_write, replace_file

    try:
        replace_file(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise cannot_write(path, error) from None


def _page_around(path: Path) -> tuple[str, dict[str, str], str]:
    """What stands before the tables, the tables that are there by name, and what comes behind."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {path.parent}") from None
        return "# Validation\n\n", {}, "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    before, begin, rest = text.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{path} is not written over: it lacks the lines {BEGIN} and {END}")
    kept = {}
    for part in inside.split("\n### ")[1:]:
        name = part.partition(":")[0].strip()
        kept[name] = f"### {part.rstrip()}\n"
    return before, kept, after


def _markdown(name: str, rows: Sequence[Row]) -> str:
    head = ["| " + " | ".join(_COLUMNS) + " |", "|---|---:|---:|---|---:|---|---|"]
    lines = ["| " + " | ".join(_escaped(cell) for cell in _cells(row)) + " |" for row in rows]
    title = f"### {name}: {_TITLES.get(name, name)}"
    return "\n".join([title, "", *head, *lines, "", f"{len(rows)} rows; {_summary(rows)}.", ""])


def _markdown_of_both(name: str, ptx: Sequence[Row], sass: Sequence[Row]) -> str:
    columns = (*_COLUMNS_OF_BOTH, "source")
    head = ["| " + " | ".join(columns) + " |", "|---|---:|---|---:|---:|---:|---:|---|---|"]
    lines = [
        "| " + " | ".join(_escaped(cell) for cell in (*_cells_of_both(*pair), pair[0].source)) + " |"
        for pair in zip(ptx, sass, strict=True)
    ]
    title = f"### {name}: {_TITLES.get(name, name)}"
    below = f"{len(ptx)} rows; as PTX: {_summary(ptx)}; as SASS: {_summary(sass)}."
    return "\n".join([title, "", *head, *lines, "", below, ""])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _number(value: float) -> str:
    if value >= 1000 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 0.1 else f"{value:.2f}"
