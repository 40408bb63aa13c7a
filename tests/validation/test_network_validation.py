# SPDX-License-Identifier: Apache-2.0
"""Networks beside packets and beside other simulators: the small jobs, within what the page says."""

import pytest

from manyscale.validation import network
from manyscale.validation.network_jobs import PEER_JOBS

pytestmark = pytest.mark.core


def test_trains_and_flows_are_near_packets():
    errors = {row.name: row.error_percent for row in network.fidelity_rows()}
    assert len(errors) == 2 * len(network.CASES)
    for name, error in errors.items():
        assert abs(error) < (4 if name.startswith("train") else 50), (name, error)


def test_small_jobs_of_other_simulators_are_within_15_percent():
    rows = network.peer_rows(most_nodes=64)
    assert len(rows) == sum(job.nodes <= 64 for job in PEER_JOBS)
    for row in rows:
        assert abs(row.error_percent) < 15, (row.name, row.error_percent)
