# SPDX-License-Identifier: Apache-2.0
"""Makes a page of every kind of report and pictures of them in `docs/figures/reports`.

    .venv/bin/python tools/report_screenshots.py [NAME ...]     all kinds, or those named
    .venv/bin/python tools/report_screenshots.py --pages DIR    keep the pages there, too

Each kind is shown as on a desk (1280 pixels wide, light), in the dark, and on a phone (390 pixels). Needs Chromium and
its driver, Pillow (which comes with matplotlib), and for the CUDA program nvcc.
"""

from __future__ import annotations

import argparse
import base64
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manyscale import System, cpu, gpu, network
from manyscale.report import Page, run_page, sweep_page
from manyscale.report.comparison_page import comparison_page
from manyscale.results import load

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "figures" / "reports"
COMMAND = ["manyscale", "report"]
SCREENS = {"": (1280, 900, False), "-dark": (1280, 900, True), "-phone": (390, 844, False)}
MOST_BYTES = 150_000
QUALITIES = (90, 75, 55)


def gpu_kernel(folder: Path) -> Page:
    """A sum of a million numbers on an A100."""
    import numpy as np

    device = gpu.TimedDevice("a100")
    module = device.load(ROOT / "examples" / "gpu" / "reduction.cu", target="sm_80")
    count = 1 << 20
    values, total = device.array(np.ones(count, np.float32)), device.zeros(1)
    workload = {"kind": "gpu-kernel", "name": "sum"}
    with device.record(folder / "kernel", workload=workload, timeline=True, command=COMMAND):
        module["sum"][432, 256](values, total, count)
    return run_page(load(folder / "kernel"))


def cuda_program(folder: Path) -> Page:
    """The radix sort of the tests, compiled here."""
    source = ROOT / "tests" / "cuda" / "programs" / "radix_sort.cu"
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise RuntimeError("there is no nvcc")
    options = ["-arch=compute_80", "-lineinfo", "-cudart", "shared", "-o", str(folder / "radix_sort")]
    subprocess.run([nvcc, *options, str(source)], check=True)
    manyscale("cuda", "--machine", "a100", "--out", str(folder / "cuda"), "--", str(folder / "radix_sort"))
    return run_page(load(folder / "cuda"))


def unified_memory(folder: Path) -> Page:
    """A training step whose pages come by faults and prefetches."""
    return run_page(load(managed(folder / "tree", "tree")))


def managed(out: Path, prefetcher: str) -> Path:
    """Runs the training step with a prefetcher."""
    from manyscale.gpu.uvm_pictures import save_pictures
    from manyscale.validation import managed_programs

    device = gpu.TimedDevice("gtx1080ti", changes=[f"gpu.uvm.prefetcher={prefetcher}"], page_log=100_000)
    workload = {"kind": "gpu-program", "name": "backprop", "managed": True}
    with device.record(out, workload=workload, timeline=True, command=COMMAND):
        managed_programs.run("backprop", device)
        save_pictures(device, out)
    return out


def processor(folder: Path) -> Page:
    """A heat equation in OpenMP on four cores."""
    program = cpu.Program(cpu.sample("heat"), ["4", "96", "6"])
    cpu.run(program, machine="broadwell", cores=4, out=folder / "cpu", command=COMMAND, hot_lines=True)
    return run_page(load(folder / "cpu"))


def replay(folder: Path) -> Page:
    """A Cholesky factorisation in tasks, replayed on eight cores."""
    program = cpu.Program(cpu.sample("elastic"), ["cholesky_tasks", "1"])
    cpu.record(program, folder / "trace", machine="elasticsimmate", cores=1)
    changes = ["cpu.cores=16"]
    cpu.replay(
        folder / "trace", changes=changes, cores=8, scheduler="fifo", out=folder / "replay", command=COMMAND
    )
    return run_page(load(folder / "replay"))


def mpi_job(folder: Path) -> Page:
    """A halo exchange on 64 nodes."""
    return run_page(load(halo(folder / "torus", "torus")))


def halo(out: Path, topology: str) -> Path:
    """Runs the halo exchange on a topology."""
    network.run(
        "halo3d", nodes=64, topology=topology, iterations=10, compute="20us", face="32KiB", fidelity="train",
        out=out, timeline=range(0, 64, 8), load="5us", command=COMMAND,
    )  # fmt: skip
    return out


def memory(folder: Path) -> Page:
    """Random accesses of four cores."""
    manyscale("mem", "run", "random", "--machine", "memory-small", "--out", str(folder / "memory"), "--quiet")
    return run_page(load(folder / "memory"))


def system(folder: Path) -> Page:
    """Two relays with credits."""
    line = System("line")
    first = line.add("synthetic.relay", "first", clock="1GHz", tokens=100, hops=1)
    last = line.add("synthetic.relay", "last", clock="1GHz", slots=2)
    line.connect(first.output, last.input, latency="2ns")
    line.run(out=folder / "system", timeline=True)
    return run_page(load(folder / "system"))


def sweep(folder: Path) -> Page:
    """Sizes of caches against footprints."""
    from manyscale.studies.sweep.sweep_directory import load_sweep

    study = ROOT / "examples" / "sweeps" / "allreduce.toml"
    manyscale("sweep", str(study), "--out", str(folder / "sweep"), "--quiet")
    found = load_sweep(folder / "sweep")
    return sweep_page(folder / "sweep", found.info, found.table)


def projection(folder: Path) -> str:
    """HPCG on up to 64 nodes, from timings of the examples."""
    out = folder / "projection"
    shutil.copytree(ROOT / "examples" / "projection" / "timings" / "hpcg", out)
    options = ["--nodes", "8,16,32,64", "--skeleton", "hpcg", "--repetitions", "3", "--quiet"]
    manyscale("project", "predict", "--out", str(out), *options)
    return (out / "report.html").read_text(encoding="utf-8")


def comparison(folder: Path) -> Page:
    """The halo exchange on two topologies."""
    return comparison_page([load(halo(folder / name, name)) for name in ("torus", "fat-tree")])


KINDS: dict[str, Callable[[Path], Page | str]] = {
    "gpu-kernel": gpu_kernel,
    "cuda-program": cuda_program,
    "unified-memory": unified_memory,
    "processor": processor,
    "replay": replay,
    "mpi-job": mpi_job,
    "memory": memory,
    "system": system,
    "sweep": sweep,
    "projection": projection,
    "comparison": comparison,
}
OPENED = {
    "gpu-kernel": ("roofline", "warp-states-and-stall-reasons", "timeline"),
    "cuda-program": ("annotated-listing",),
    "mpi-job": ("network-topology-load-and-queues",),
    "processor": ("top-down-and-cpi-stacks", "branch-cache-and-tlb-misses", "dram-bandwidth-over-time"),
}
"""Sections that are shown besides, each in a picture of its own."""


def manyscale(*arguments: str) -> None:
    """Runs a command of ours."""
    subprocess.run(
        [sys.executable, "-m", "manyscale.cli.app", *arguments], check=True, stdout=subprocess.DEVNULL
    )


def compressed(png: bytes) -> bytes:
    """The picture as WebP, small enough to be kept."""
    from PIL import Image

    data = b""
    for quality in QUALITIES:
        out = io.BytesIO()
        Image.open(io.BytesIO(png)).convert("RGB").save(out, "WEBP", quality=quality, method=6)
        data = out.getvalue()
        if len(data) < MOST_BYTES:
            return data
    raise RuntimeError(f"a picture takes {len(data):,} bytes, more than {MOST_BYTES:,}")


def shot(browser: Any, width: int, top: float, height: float) -> bytes:
    """A part of the page, as wide as the screen."""
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    answer = browser.command("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return compressed(base64.b64decode(answer["data"]))


def picture(name: str, page: Path) -> list[Path]:
    """Pictures of a page on each screen, and of sections of it."""
    sys.path.insert(0, str(ROOT / "tests" / "report"))
    from browser import Browser  # type: ignore[import-not-found]

    written = []
    for ending, (width, height, dark) in SCREENS.items():
        with Browser(width, height, dark=dark) as browser:
            browser.resize(width, height)
            browser.open(page)
            pictures = {f"{name}{ending}": shot(browser, width, 0, height)}
            for anchor in OPENED.get(name, ()) if not ending else ():
                pictures[f"{name}-{anchor}"] = section_picture(browser, anchor, width)
            if browser.errors():
                raise RuntimeError(f"{name}: {browser.errors()}")
        for stem, data in pictures.items():
            written.append(TARGET / f"{stem}.webp")
            written[-1].write_bytes(data)
    return written


def opened(browser: Any, anchor: str) -> list[float]:
    """Opens a section of a page; says where it begins, and its height."""
    browser.run(f"document.getElementById('{anchor}').open = true")
    browser.run("return new Promise((resolve) => setTimeout(resolve, 1500))")
    box: list[float] = browser.run(
        f"const box = document.getElementById('{anchor}').getBoundingClientRect();"
        "return [box.top + window.scrollY, box.height]"
    )
    return box


def section_picture(browser: Any, anchor: str, width: int) -> bytes:
    """A section of a page, opened."""
    box = opened(browser, anchor)
    data = shot(browser, width, box[0], min(box[1], 1100))
    browser.run(f"document.getElementById('{anchor}').open = false")
    return data


def main() -> None:
    """Makes the pages that are asked for, and their pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--pages", type=Path, help="keep the pages in this folder")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(KINDS))
    if unknown:
        parser.error(f"there is no kind {', '.join(unknown)}; kinds are {', '.join(KINDS)}")
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in options.names or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            made = KINDS[name](Path(folder))
            kept = options.pages or Path(folder)
            kept.mkdir(parents=True, exist_ok=True)
            page = kept / f"{name}.html"
            page.write_text(made if isinstance(made, str) else made.html(), encoding="utf-8")
            files = picture(name, page)
            sizes = ", ".join(f"{file.name} {file.stat().st_size / 1000:.0f} kB" for file in files)
            print(f"{name}: page {page.stat().st_size / 1e6:.2f} MB; {sizes}", flush=True)


if __name__ == "__main__":
    main()
