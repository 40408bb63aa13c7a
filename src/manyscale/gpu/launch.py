# SPDX-License-Identifier: Apache-2.0
"""The result of a launch on a functional device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from manyscale.results.notebook import NotebookView, facts_table


@dataclass(frozen=True)
class Launch(NotebookView):
    """The result of a launch: executed instructions, output and warnings."""

    kernel: str
    isa: str  # "ptx" or "sass": the ISA of the counted instructions
    warp_instructions: int
    thread_instructions: int
    printed: str
    warnings: tuple[str, ...]
    wall_seconds: float

    def _notebook(self) -> Iterable[str]:
        counts = {
            f"warp instructions ({self.isa.upper()})": f"{self.warp_instructions:,}",
            "thread instructions": f"{self.thread_instructions:,}",
        }
        yield facts_table(self.kernel, counts | {"warning": "; ".join(self.warnings) or "none"})
