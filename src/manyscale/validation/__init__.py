# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the simulator with published measurements of hardware, and with other simulators, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from manyscale.errors import InputError
from manyscale.gpu.isa import Isa
from manyscale.validation import cpu, elastic, gpu_apps, gpu_clocks, gpu_micro, network, projection, uvm
from manyscale.validation.rows import Row, correlations, max_error_percent, mean_error_percent

__all__ = [
    "FORMS",
    "VALIDATIONS",
    "Row",
    "correlations",
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
}


def validate(only: str | None = None, machine: str | None = None, isa: Isa = "auto") -> list[Row]:
    """The rows of the validation named `only`, or of all."""
    return [row for _, rows in tables(only, machine, isa) for row in rows]


def tables(
    only: str | None = None, machine: str | None = None, isa: Isa = "auto"
) -> Iterator[tuple[str, list[Row]]]:
    """Each validation with its rows, when they are there; only the one named `only`, if it is given.

    `machine`: without it, each runs on the machine of its references.
    `isa`: whether the kernels of those in `FORMS` run as PTX or as SASS.
    """
    if only is not None and only not in VALIDATIONS:
        raise InputError(f"there is no validation named '{only}'; known: {', '.join(VALIDATIONS)}")
    for name in VALIDATIONS if only is None else [only]:
        on = () if machine is None else (machine,)
        yield name, FORMS[name](*on, isa=isa) if name in FORMS else VALIDATIONS[name](*on)
