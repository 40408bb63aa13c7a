# SPDX-License-Identifier: Apache-2.0
"""Results show themselves in notebooks: as tables and plots, escaped, in the forms that a notebook asks for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from manyscale import System, cpu, gpu, load, network
from manyscale.cpu.scaling import Point, Study
from manyscale.results.notebook import rows_table

pytestmark = pytest.mark.core

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""


def test_a_system_and_its_run(tmp_path):
    system = System("line")
    first, last = (
        system.add("synthetic.relay", "first", tokens=1, hops=1),
        system.add("synthetic.relay", "last"),
    )
    system.connect(first.output, last.input, latency="1ns")
    result = system.run(out=tmp_path / "run")
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == repr(result)
    assert "<td>simulated_seconds</td>" in bundle["text/html"]
    assert result._repr_mimebundle_(include=["text/html"]) == {"text/html": bundle["text/html"]}
    assert result._repr_mimebundle_(exclude=["text/html"]) == {"text/plain": repr(result)}
    assert "<td>events</td>" in load(tmp_path / "run")._repr_html_()


def test_a_program_on_cores():
    shown = cpu.run(
        cpu.Program(cpu.sample("heat"), ["1", "16", "1"]), machine="broadwell", cores=1
    )._repr_html_()
    assert shown.count("<svg") == 1
    assert "Where the cycles went" in shown
    assert "<td>l1</td>" in shown


def test_a_job():
    shown = network.run("halo3d", nodes=8, iterations=1, topology="torus")._repr_html_()
    assert shown.count("<svg") == 2  # what ranks did, and the network


def test_a_kernel(tmp_path):
    device = gpu.TimedDevice("v100")
    (tmp_path / "nothing.ptx").write_text(PTX)
    launch = device.load(tmp_path / "nothing.ptx")["nothing"][4, 64]()
    shown = launch._repr_html_()
    assert shown == launch.profile._repr_mimebundle_()["text/html"]
    assert shown.count("<svg") == 1
    assert "limited by" in shown


def test_a_study():
    points = [Point(f"{k} cores", k, 1.0 / k, 10, {"l1": 0.1}, {}, 0.0, 0, 1.0) for k in (1, 2, 4)]
    shown = Study("Scaling <b>", "strong", points)._repr_html_()
    assert shown.count("<svg") == 2
    assert "Scaling &lt;b&gt;" in shown
    assert "Scaling <b>" not in shown


def test_long_tables_show_their_beginning():
    shown = rows_table("numbers", ("n",), ((k,) for k in range(1000)))
    assert shown.count("<tr>") == 21
    assert "the first 20 of 1,000 rows" in shown


def test_importing_takes_less_than_half_a_second():
    script = "import time; t = time.process_time(); import manyscale; print(time.process_time() - t)"
    seconds = [
        float(
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        )
        for _ in range(3)
    ]
    assert np.median(seconds) < 0.5
