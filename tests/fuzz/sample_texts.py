# SPDX-License-Identifier: Apache-2.0
"""Small valid files of the formats that are text."""

STUDY = """\
name = "study"
machine = "memory-small"
repetitions = 2
seed = 3
timeout = "10s"
threads = 1

[workload]
kind = "memory"
pattern = "random"
accesses = 100

[set]
"memory.cores" = 2

[axes]
"workload.footprint" = { from = "4KiB", to = "64KiB", factor = 4 }

[[zip]]
"memory.l1.size" = ["16KiB", "32KiB", "64KiB"]
"memory.l1.ways" = [4, 8, 16]

[metrics]
latency = "latency_seconds"
l1_hits = "core[*]:l1.hits"
"""

GPGPUSIM = """\
# a comment
-gpgpu_n_clusters 4
-gpgpu_n_cores_per_cluster 2
-gpgpu_clock_domains 1417.0:1417.0:1417.0:2500.0
-gpgpu_shader_registers 65536
-gpgpu_shader_core_pipeline 2048:32
-gpgpu_shmem_size 98304
-gpgpu_cache:dl1  S:4:128:64,L:L:m:N:L,A:512:8,16:0,32
-gpgpu_cache:dl2 S:32:128:24,L:B:m:L:P,A:192:4,32:0,32
-gpgpu_n_mem 24
-gpgpu_dram_timing_opt "nbk=16:CCD=1:RRD=3:RCD=12:RAS=28:RP=12:RC=40:CL=12:WL=2:CDLR=3:WR=10:nbkgrp=4:CCDL=2:RTPL=3"
-gpgpu_compute_capability_major 7
"""

INI = """\
[CPU]
clock: 2660MHz
num_cores: 1
[Memory]
clock: 200MHz
network_bw: 96GB/s
capacity: 16384MiB
[GPU]
clock: 1200MHz
gpu_cores: 80
gpu_l2_parts: 32
gpu_l2_capacity: 192KiB
gpu_cpu_latency: 23840ps
"""

GRAPH = """\
# a triangle
switches 3
nodes 0 2
nodes 1
nodes 2 2
link 0 1
link 1 2 100Gb/s
link 2 0 10GB/s 50ns
"""

GOAL = """\
num_ranks 3
rank 0 {
l1: calc 100
l2: send 8192b to 1 tag 7
l2 requires l1
l3: recv 16b from 2 tag 1
l3 requires l2
}
rank 1 {
l1: recv 8192b from 0 tag 7
l2: calc 5000
l2 requires l1
}
rank 2 {
l1: send 16b to 0 tag 1
}
"""

MEMORY_TRACE = """\
R 0x1000 8
W 0x1040 8
# a comment
A 0x2000 4
R 0x10c0 16
"""
