# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of this folder and stores their PTX, so that examples and tests need no compiler.

Run by hand where nvcc or NVRTC is installed:

    python examples/projection/kernels/build.py
"""

from __future__ import annotations

from pathlib import Path

from manyscale.gpu.cuda_compiler import compile_cuda

HERE = Path(__file__).parent


def main() -> None:
    """Compiles and stores."""
    for source in sorted(HERE.glob("*.cu")):
        ptx = compile_cuda(source.read_bytes(), source.name, HERE, "sm_75")
        # It uses nothing that a V100 does not have, for which compilers of today make no PTX any more.
        ptx = ptx.replace(b".target sm_75", b".target sm_70")
        # Line tables name the file, without the folder of this machine.
        source.with_suffix(".ptx").write_bytes(ptx.replace(f"{HERE.resolve()}/".encode(), b""))


if __name__ == "__main__":
    main()
