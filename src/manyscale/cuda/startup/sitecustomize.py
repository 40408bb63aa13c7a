# SPDX-License-Identifier: Apache-2.0
"""Runs when the Python of a simulated program starts, with `manyscale cuda --operators`: the operators of PyTorch
become NVTX ranges as soon as it is imported. Then the environment's own `sitecustomize`, which this one hides, runs."""

import atexit
import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any


class _AfterTorch:
    """Finds `torch` as it would be found without it, and switches its ranges on when it has been loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The specification of torch, whose loader does a little more."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        if found is None or found.loader is None:
            return found
        execute = found.loader.exec_module

        def execute_and_mark(module: Any) -> None:
            execute(module)
            with contextlib.suppress(Exception):  # of a PyTorch without CUDA or without NVTX
                from torch.autograd.profiler import emit_nvtx  # type: ignore[import-not-found]

                ranges = emit_nvtx(record_shapes=True)
                ranges.__enter__()
                atexit.register(ranges.__exit__, None, None, None)

        found.loader.exec_module = execute_and_mark  # type: ignore[method-assign]
        return found


def _run_hidden() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if hidden is not None and hidden.loader is not None:
        module = importlib.util.module_from_spec(hidden)
        sys.modules["sitecustomize"] = module
        hidden.loader.exec_module(module)


sys.meta_path.insert(0, _AfterTorch())
_run_hidden()
