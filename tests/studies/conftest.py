# SPDX-License-Identifier: Apache-2.0
"""What all tests of studies share."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """What the MPI library costs is measured once for all tests, and the user's cache is left alone."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
