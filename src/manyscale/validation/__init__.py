# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the simulator with published measurements of hardware, and with other simulators, by name."""

from __future__ import annotations

from collections.abc import Callable

from manyscale.errors import InputError
from manyscale.validation import cpu, elastic, gpu_apps, gpu_clocks, gpu_micro, network, uvm
from manyscale.validation.rows import Row, max_error_percent, mean_error_percent

__all__ = ["VALIDATIONS", "Row", "max_error_percent", "mean_error_percent", "validate"]

# What each takes is the name or file of a machine.
VALIDATIONS: dict[str, Callable[[str], list[Row]]] = {
    "gpu-micro": gpu_micro.rows,
    "gpu-apps": gpu_apps.rows,
    "gpu-clocks": gpu_clocks.rows,
    "cpu": cpu.rows,
    "elastic": elastic.rows,
    "network": network.rows,
    "uvm": uvm.rows,
}


def validate(only: str | None = None, machine: str = "v100") -> list[Row]:
    """The rows of the validation named `only`, or of all."""
    if only is None:
        return [row for rows in VALIDATIONS.values() for row in rows(machine)]
    if only not in VALIDATIONS:
        raise InputError(f"there is no validation named '{only}'; known: {', '.join(VALIDATIONS)}")
    return VALIDATIONS[only](machine)
