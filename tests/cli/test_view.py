# SPDX-License-Identifier: Apache-2.0
"""`manyscale view`: runs and sweeps of a folder, served on this machine only, also while they run."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request

import pytest
from run_directories import kernel_run

from manyscale.cli.app import main
from manyscale.cli.view import Server
from manyscale.results import RunWriter

pytestmark = pytest.mark.core


@pytest.fixture
def server(tmp_path):
    kernel_run(tmp_path / "study" / "kernel")
    with Server(tmp_path) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def get(server: Server, path: str, **headers: str) -> str:
    request = urllib.request.Request(server.url + path, headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


def test_the_list_leads_to_the_report_of_each_run(server):
    text = get(server, "")
    assert '<a href="/run/study/kernel">study/kernel</a>' in text
    assert "1 ms simulated" in text
    page = get(server, "run/study/kernel")
    assert "limited by DRAM bandwidth" in page
    assert "state.json" not in page  # it is done: nothing will change


def test_a_run_that_is_under_way_is_shown_and_looked_at_again(server, tmp_path):
    with RunWriter(tmp_path / "now", command=["x"], workload={"kind": "network"}, seed=0) as writer:
        rows = {row["name"]: row for row in json.loads(get(server, "state.json"))}
        assert rows["now"]["status"] == "running"
        page = get(server, "run/now")
        assert "The run is in progress." in page
        assert "state.json" in page
        writer.finish({"simulated_seconds": {"value": 1e-3, "unit": "s"}})
    assert "in progress" not in get(server, "run/now")


@pytest.mark.parametrize("path", ["run/nothing", "run/..%2F..%2Fetc", "run/study", "report.html"])
def test_nothing_else_is_served(server, path):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, path)


def test_another_host_name_is_refused(server):
    """A page from elsewhere whose name was made to lead to this machine cannot read runs."""
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(server, "", Host="example.org")


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"


def test_a_folder_that_is_not_there(tmp_path, capsys):
    assert main(["view", str(tmp_path / "nothing")]) != 0
    assert "is not a folder" in capsys.readouterr().err
