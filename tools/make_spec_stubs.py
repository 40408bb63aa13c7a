# SPDX-License-Identifier: Apache-2.0
"""Writes the stub of the Specs that are made of the core's tables, so that mypy knows their parameters.

    python tools/make_spec_stubs.py src/manyscale/machine/core_specs.pyi

Run by `make install`, as the stub of the core is. The stub stands for no module: it is imported for type checking only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from manyscale.spec import Section, Spec, field_type

# By module: the Specs there that are made at run time.
SPECS = {
    "cpu": ("CpuCore", "CpuSystem"),
    "gpu": ("Sm", "Scheduler", "L2Slice", "GpuChannel"),
    "link": ("CopyEngine",),
    "uvm": ("UvmModel",),
    "hierarchy": ("SharedSlice", "InterconnectModel", "DramChannelModel"),
    "memory": ("GeneratorCore", "L1", "L2", "Prefetcher", "Translation", "Pattern"),
    "network": ("Fabric", "Mpi"),
}
DEFAULTS = {"int": "0", "float": "0.0", "bool": "False", "str": '""'}
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_spec_stubs.py from the core's tables.
from manyscale.spec import Spec
"""


def classes(name: str, spec: type[Spec]) -> Iterator[str]:
    """The class of a Spec, after those of the sections within it."""
    lines = []
    for field, info in spec.model_fields.items():
        found = field_type(info)
        if found.spec is not None:
            kind = name + "".join(part.title() for part in field.split("_"))
            yield from classes(kind, found.spec)
        elif found.quantity is not None:
            kind = "int" if found.quantity.dimension.whole else "float"
        else:
            kind = "bool" if found.name == "true or false" else "str"
        default = "None" if found.optional else DEFAULTS.get(kind, f"{kind}()")
        lines.append(f"    {field}: {kind}{' | None' if found.optional else ''} = {default}")
    yield "\n".join([f"class {name}(Spec):", *(lines or ["    pass"])])


def spec_of(made: Any) -> type[Spec]:
    """The Spec, or that of a section that is made when it is first used."""
    sections = [item for item in getattr(made, "__metadata__", ()) if isinstance(item, Section)]
    return sections[0].spec if sections else made


def main() -> int:
    texts = [
        text
        for module, names in SPECS.items()
        for name in names
        for text in classes(name, spec_of(getattr(import_module(f"manyscale.machine.{module}"), name)))
    ]
    Path(sys.argv[1]).write_text("\n\n".join([HEAD, *texts]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
