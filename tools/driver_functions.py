# SPDX-License-Identifier: Apache-2.0
"""Writes the table of the CUDA driver's functions (cudart/driver/functions.inc) from the headers of a CUDA toolkit.

python tools/driver_functions.py /usr/local/cuda/include

Names of the table stay when a later toolkit does not have them any more: run it with several toolkits to add up.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

TABLE = Path(__file__).parents[1] / "cudart" / "driver" / "functions.inc"
HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h")
TYPEDEFS = (
    "cudaTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
    "cudaProfilerTypedefs.h",
)
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver, written by tools/driver_functions.py: each by the name of its symbol, the name that
// cuGetProcAddress is asked for, the version of CUDA since which that name means this symbol, and whether it is the
// one for programs with a default stream for each thread.
"""
ROW = re.compile(r"FUNCTION\((\w+), (\w+), (\d+), (\d)\)")
SYMBOL = re.compile(r"(cu[A-Z]\w*?)(?:_v(\d))?(_ptds|_ptsz)?$")


def main(folder: Path) -> None:
    text = "\n".join((folder / name).read_text() for name in HEADERS if (folder / name).exists())
    types = "\n".join((folder / name).read_text() for name in TYPEDEFS if (folder / name).exists())
    symbols = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
    symbols |= set(re.findall(r"#\s*define\s+cu[A-Z]\w*\s+(cu[A-Z]\w*)", text))
    for macro, ending in (("PTDS", "_ptds"), ("PTSZ", "_ptsz")):
        symbols |= {name + ending for name in re.findall(rf"__CUDA_API_{macro}\((cu[A-Z]\w*)\)", text)}
        symbols |= set(re.findall(rf"\bcu[A-Z]\w*{ending}\b", text))
    since = defaultdict(set)
    for name, version, thread in re.findall(r"PFN_(cu[A-Z]\w*?)_v(\d+)(_pt[ds]z?s?)?\)", types):
        since[name, bool(thread)].add(int(version))
    rows = {row[0]: row for row in ROW.findall(TABLE.read_text())} if TABLE.exists() else {}
    by_name = defaultdict(list)
    for symbol in symbols:
        found = SYMBOL.match(symbol)
        if found:
            by_name[found[1], bool(found[3])].append((int(found[2] or 1), symbol))
    for (name, thread), variants in by_name.items():
        versions = sorted(since[name, thread], reverse=True)
        for index, (_, symbol) in enumerate(
            sorted(variants, reverse=True)
        ):  # the newest of both belong together
            version = versions[index] if index < len(versions) else 0
            rows[symbol] = (symbol, name, str(version), str(int(thread)))
    lines = [f"FUNCTION({', '.join(rows[symbol])})" for symbol in sorted(rows)]
    TABLE.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
