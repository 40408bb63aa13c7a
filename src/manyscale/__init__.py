# SPDX-License-Identifier: Apache-2.0
"""Manyscale: a simulator of parallel machines at every scale.

The public names are listed in `__init__.pyi` and imported when first used, so that `import manyscale` is quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
