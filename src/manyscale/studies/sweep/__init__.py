# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one workload at many points, on all cores, a Dask cluster or Slurm; a killed sweep goes on where it was.

>>> from manyscale import Study
>>> study = Study({"kind": "network", "work": "allreduce"}, axes={"workload.nodes": [4, 8]})
>>> study.run().table                                         # doctest: +SKIP

The names are in `__init__.pyi` and imported when first used, so that workers, which need few of them, start at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
