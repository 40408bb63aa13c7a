# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the simulator with published measurements of hardware, and with other simulators, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from manyscale.errors import InputError
from manyscale.gpu.isa import Isa
from manyscale.validation import (
    cpu,
    elastic,
    gpu_apps,
    gpu_clocks,
    gpu_micro,
    gpu_programs,
    network,
    projection,
    sst_gpu_programs,
    uvm,
)
from manyscale.validation.rows import Row, correlations, headline_rows, max_error_percent, mean_error_percent

__all__ = [
    "FORMS",
    "NEED_PROGRAMS",
    "VALIDATIONS",
    "WITH_PROGRAMS",
    "Row",
    "correlations",
    "headline_rows",
    "max_error_percent",
    "mean_error_percent",
    "tables",
    "validate",
]

# Each takes the name or file of a machine, or runs on the machine of its references.
VALIDATIONS: dict[str, Callable[..., list[Row]]] = {
    "gpu-micro": gpu_micro.rows,
    "gpu-apps": gpu_apps.rows,
    "gpu-clocks": gpu_clocks.rows,
    "gpu-programs": gpu_programs.rows,
    "gpu-mix": sst_gpu_programs.mix_rows,
    "cpu": cpu.rows,
    "elastic": elastic.rows,
    "network": network.rows,
    "projection": projection.rows,
    "uvm": uvm.rows,
}


# Those whose kernels run as PTX or as SASS.
FORMS: dict[str, Callable[..., list[Row]]] = {
    "gpu-micro": gpu_micro.rows,
    "gpu-apps": gpu_apps.rows,
    "gpu-clocks": gpu_clocks.rows,
    "gpu-programs": gpu_programs.rows,
    "gpu-mix": sst_gpu_programs.mix_rows,
}

# Those that have no rows without programs of the user, and those that have more rows with them.
NEED_PROGRAMS = ("gpu-programs", "gpu-mix")
WITH_PROGRAMS = ("gpu-apps", "gpu-clocks", *NEED_PROGRAMS)


def validate(
    only: str | None = None, machine: str | None = None, isa: Isa = "auto", programs: Path | None = None
) -> list[Row]:
    """The rows of the validation named `only`, or of all."""
    return [row for _, rows in tables(only, machine, isa, programs) for row in rows]


def tables(
    only: str | None = None,
    machine: str | None = None,
    isa: Isa = "auto",
    programs: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[str, list[Row]]]:
    """Each validation with its rows, when they are there; only the one named `only`, if it is given.

    `machine`: without it, each runs on the machine of its references.
    `isa`: whether the kernels of those in `FORMS` run as PTX or as SASS.
    `programs`: a folder of programs for those in `WITH_PROGRAMS`; `say` is told which of them are missing.
    """
    if only is not None and only not in VALIDATIONS:
        raise InputError(f"there is no validation named '{only}'; known: {', '.join(VALIDATIONS)}")
    for name in VALIDATIONS if only is None else [only]:
        if only is None and programs is None and name in NEED_PROGRAMS:
            continue
        on = () if machine is None else (machine,)
        options: dict[str, Any] = {"isa": isa} if name in FORMS else {}
        if name in WITH_PROGRAMS and (programs is not None or name in NEED_PROGRAMS):
            options |= {"programs": programs, "say": say}
        yield name, VALIDATIONS[name](*on, **options)
