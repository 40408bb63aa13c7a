# SPDX-License-Identifier: Apache-2.0
"""Whether the tests run with a sanitizer loaded, as `make test-asan` and `make test-tsan` run them."""

import os

SANITIZED = any(name in os.environ.get("LD_PRELOAD", "") for name in ("libasan", "libtsan"))
# Tools that are not ours, such as nvcc, crash with a sanitizer's library in them.
PLAIN = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
