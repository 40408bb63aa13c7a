# SPDX-License-Identifier: Apache-2.0
"""Manyscale: a simulator of parallel machines at every scale.

The public names are listed in `__init__.pyi` and imported when first used, so that `import manyscale` is quick.
"""

import lazy_loader

from manyscale.isa_level import core_folders

__path__.extend(core_folders(__path__[0]))
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
