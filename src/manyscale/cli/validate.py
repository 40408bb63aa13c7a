# SPDX-License-Identifier: Apache-2.0
"""`manyscale validate`: how far the simulator is from published measurements and from other simulators."""

from __future__ import annotations

from typing import Annotated

import typer

from manyscale.cli.console import emit_json
from manyscale.cli.listing import print_table
from manyscale.cli.options import Json, Machine

commands = typer.Typer()

_TITLES = {
    "network": "networks beside other simulators",
    "cpu": "processors beside what is published",
    "elastic": "replayed traces beside detailed runs",
    "uvm": "unified memory beside a GTX 1080 Ti and another simulator",
}


@commands.command()
def validate(
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="One validation: gpu-micro, gpu-apps, gpu-clocks, cpu, elastic, network or uvm; all without it.",
        ),
    ] = None,
    machine: Machine = "v100",
    json: Json = False,
) -> None:
    """Compare the simulated V100 and processors with published measurements, and networks with other simulators.

    Another machine than v100 is compared with the same measurements. Processors, networks and unified memory have
    machines of their own.
    """
    from manyscale import validation

    rows = validation.validate(only, machine)
    mean, largest = validation.mean_error_percent(rows), validation.max_error_percent(rows)
    if json:
        data = [
            {
                "name": row.name,
                "simulated": row.simulated,
                "reference": row.reference,
                "unit": row.unit,
                "error_percent": row.error_percent,
                "source": row.source,
            }
            for row in rows
        ]
        emit_json({"rows": data, "mean_error_percent": mean, "max_error_percent": largest})
        return
    print_table(
        _TITLES.get(only or "", f"{machine} beside hardware"),
        ("name", "simulated", "reference", "unit", "error %", "source"),
        [
            (
                row.name,
                _number(row.simulated),
                _number(row.reference),
                row.unit,
                f"{row.error_percent:+.1f}",
                row.source,
            )
            for row in rows
        ],
    )
    typer.echo(f"absolute error: mean {mean:.1f}%, max {largest:.1f}%")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == round(value) else f"{value:.2f}"
