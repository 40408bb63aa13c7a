# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of `manyscale demo` and stores their PTX, so that the demo needs no CUDA compiler.

Run by hand where nvcc or NVRTC is installed:

    python tools/demo_kernels.py
"""

from __future__ import annotations

import re
from pathlib import Path

from manyscale.gpu.cuda_compiler import compile_cuda

SOURCE = Path(__file__).resolve().parents[1] / "src" / "manyscale" / "cli" / "demo_kernels.cu"


def main() -> None:
    """Compiles and stores."""
    ptx = compile_cuda(SOURCE.read_bytes(), SOURCE.name, SOURCE.parent, "sm_75").decode()
    # They use nothing that a GPU of compute capability 6.0 lacks, for which compilers of today make no PTX.
    ptx = re.sub(r"^\.version .*", ".version 7.0", ptx, flags=re.M).replace(".target sm_75", ".target sm_60")
    # Line tables name the file, without the folder of this machine.
    ptx = ptx.replace(f"{SOURCE.parent}/", "")
    SOURCE.with_suffix(".ptx").write_text(f"// SPDX-License-Identifier: Apache-2.0\n{ptx}", encoding="utf-8")


if __name__ == "__main__":
    main()
