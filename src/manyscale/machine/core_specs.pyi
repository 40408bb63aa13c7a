# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_spec_stubs.py from the core's tables.
from manyscale.spec import Spec


class CpuCoreTimingInteger(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingMultiply(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingDivide(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatAdd(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatMultiply(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatFused(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatDivide(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatDivideSingle(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatRoot(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatRootSingle(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFloatConvert(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingLoad(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingStore(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingAtomic(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingFence(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingControl(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTimingSystem(Spec):
    latency: int | None = None
    interval: int | None = None

class CpuCoreTiming(Spec):
    integer: CpuCoreTimingInteger | None = None
    multiply: CpuCoreTimingMultiply | None = None
    divide: CpuCoreTimingDivide | None = None
    float_add: CpuCoreTimingFloatAdd | None = None
    float_multiply: CpuCoreTimingFloatMultiply | None = None
    float_fused: CpuCoreTimingFloatFused | None = None
    float_divide: CpuCoreTimingFloatDivide | None = None
    float_divide_single: CpuCoreTimingFloatDivideSingle | None = None
    float_root: CpuCoreTimingFloatRoot | None = None
    float_root_single: CpuCoreTimingFloatRootSingle | None = None
    float_convert: CpuCoreTimingFloatConvert | None = None
    load: CpuCoreTimingLoad | None = None
    store: CpuCoreTimingStore | None = None
    atomic: CpuCoreTimingAtomic | None = None
    fence: CpuCoreTimingFence | None = None
    control: CpuCoreTimingControl | None = None
    system: CpuCoreTimingSystem | None = None

class CpuCoreL1I(Spec):
    size: int | None = None
    line: int | None = None
    ways: int | None = None
    sectored: bool | None = None
    replacement: str | None = None
    write: str | None = None
    allocate_on_write: bool | None = None
    tag_latency: int | None = None
    data_latency: int | None = None
    outstanding_misses: int | None = None
    merged_misses: int | None = None
    banks: int | None = None
    ports: int | None = None
    hash_index: bool | None = None
    classify_misses: bool | None = None

class CpuCoreFirstPrefetcher(Spec):
    kind: str | None = None
    line_size: int | None = None
    page_size: int | None = None
    degree: int | None = None
    distance: int | None = None
    entries: int | None = None
    confidence: int | None = None
    window: int | None = None

class CpuCoreTranslationInstruction(Spec):
    entries: int | None = None
    ways: int | None = None
    latency: int | None = None

class CpuCoreTranslationData(Spec):
    entries: int | None = None
    ways: int | None = None
    latency: int | None = None

class CpuCoreTranslationSecond(Spec):
    entries: int | None = None
    ways: int | None = None
    latency: int | None = None

class CpuCoreTranslationWalkCache(Spec):
    entries: int | None = None
    ways: int | None = None
    latency: int | None = None

class CpuCoreTranslation(Spec):
    enabled: bool | None = None
    instruction: CpuCoreTranslationInstruction | None = None
    data: CpuCoreTranslationData | None = None
    second: CpuCoreTranslationSecond | None = None
    walk_cache: CpuCoreTranslationWalkCache | None = None
    page_size: int | None = None
    levels: int | None = None
    walkers: int | None = None
    walk_penalty: int | None = None

class CpuCoreBranch(Spec):
    kind: str | None = None
    base_entries: int | None = None
    tables: int | None = None
    table_entries: int | None = None
    tag_bits: int | None = None
    shortest_history: int | None = None
    longest_history: int | None = None
    reset_period: int | None = None
    gshare_history: int | None = None
    loop_entries: int | None = None
    btb_entries: int | None = None
    btb_ways: int | None = None
    return_stack: int | None = None
    indirect_entries: int | None = None
    indirect_tables: int | None = None
    indirect_history: int | None = None

class CpuCore(Spec):
    in_order: bool | None = None
    fetch_width: int | None = None
    fetch_bytes: int | None = None
    fetch_buffer: int | None = None
    front_end_depth: int | None = None
    mispredict_penalty: int | None = None
    misfetch_penalty: int | None = None
    dispatch_width: int | None = None
    reorder_buffer: int | None = None
    issue_queue: int | None = None
    float_queue: int | None = None
    memory_queue: int | None = None
    integer_registers: int | None = None
    float_registers: int | None = None
    load_queue: int | None = None
    store_queue: int | None = None
    issue_width: int | None = None
    ports: str | None = None
    timing: CpuCoreTiming | None = None
    commit_width: int | None = None
    memory_model: str | None = None
    speculative_loads: bool | None = None
    forward_latency: int | None = None
    failed_forward_latency: int | None = None
    stores_per_cycle: int | None = None
    outstanding_stores: int | None = None
    quantum: int | None = None
    l1i: CpuCoreL1I | None = None
    home_hash: str | None = None
    writeback_buffer: int | None = None
    first_prefetcher: CpuCoreFirstPrefetcher | None = None
    fetch_ahead: int | None = None
    mshrs_per_level: bool | None = None
    translation: CpuCoreTranslation | None = None
    branch: CpuCoreBranch | None = None

class CpuSystem(Spec):
    run_ahead: int | None = None
    time_slice: int | None = None
    system_call_latency: int | None = None
    wake_latency: int | None = None
    switch_latency: int | None = None

class SmTimingInteger(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingLogic(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingMultiplyAdd(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingMultiplyWide(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingFp32(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingFp16(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingFp64(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingSpecialFunction(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingConvert(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingTensorHalf(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingTensorInteger(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingTensorDouble(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingMoveSpecial(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingShuffle(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingVote(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingBranch(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingBarrier(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingFence(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTimingOther(Spec):
    latency: int | None = None
    interval: int | None = None

class SmTiming(Spec):
    integer: SmTimingInteger | None = None
    logic: SmTimingLogic | None = None
    multiply_add: SmTimingMultiplyAdd | None = None
    multiply_wide: SmTimingMultiplyWide | None = None
    fp32: SmTimingFp32 | None = None
    fp16: SmTimingFp16 | None = None
    fp64: SmTimingFp64 | None = None
    special_function: SmTimingSpecialFunction | None = None
    convert: SmTimingConvert | None = None
    tensor_half: SmTimingTensorHalf | None = None
    tensor_integer: SmTimingTensorInteger | None = None
    tensor_double: SmTimingTensorDouble | None = None
    move_special: SmTimingMoveSpecial | None = None
    shuffle: SmTimingShuffle | None = None
    vote: SmTimingVote | None = None
    branch: SmTimingBranch | None = None
    barrier: SmTimingBarrier | None = None
    fence: SmTimingFence | None = None
    other: SmTimingOther | None = None
    other_unit: int | None = None
    queued_unit: int | None = None
    taken: int | None = None
    guard: int | None = None
    operand_read: int | None = None

class SmL1(Spec):
    size: int | None = None
    least: int | None = None
    line: int | None = None
    ways: int | None = None
    hit_latency: int | None = None
    outstanding_lines: int | None = None
    outstanding_writes: int | None = None
    slice_hash: str | None = None
    miss_latency: int | None = None
    return_latency: int | None = None
    request_interval: int | None = None
    write_interval: int | None = None
    drain_latency: int | None = None
    tags: int | None = None
    banks: int | None = None
    atomic_width: int | None = None

class SmTlb(Spec):
    entries: int | None = None
    ways: int | None = None
    latency: int | None = None
    faults: str | None = None
    outstanding: int | None = None
    report_interval: int | None = None

class SmDeviceTlb(Spec):
    entries: int | None = None
    page: int | None = None
    miss_latency: int | None = None
    region: int | None = None
    walk_latency: int | None = None

class Sm(Spec):
    clock: int | None = None
    sub_cores: int | None = None
    warps: int | None = None
    scheduler: str | None = None
    timing: SmTiming | None = None
    l1: SmL1 | None = None
    tlb: SmTlb | None = None
    device_tlb: SmDeviceTlb | None = None
    shared_latency: int | None = None
    shared_banks: int | None = None
    address_interval: int | None = None
    global_interval: int | None = None
    memory_queue: int | None = None
    lsu_interval: int | None = None
    texture_units: int | None = None
    texture_latency: int | None = None
    constant_size: int | None = None
    constant_line: int | None = None
    constant_ways: int | None = None
    constant_latency: int | None = None
    constant_l15_latency: int | None = None
    instruction_line: int | None = None
    instruction_ways: int | None = None
    prefetched_lines: int | None = None
    fetch_interval: int | None = None
    l0_instructions: int | None = None
    l1_instructions: int | None = None
    l0_miss_latency: int | None = None
    l1_miss_latency: int | None = None
    cta_launch_latency: int | None = None

class SchedulerUnits(Spec):
    registers: int | None = None
    shared: int | None = None
    shared_reserved: int | None = None

class SchedulerLimits(Spec):
    ctas: int | None = None
    threads: int | None = None
    warps: int | None = None
    registers: int | None = None
    shared: int | None = None

class Scheduler(Spec):
    clock: int | None = None
    kernel_latency: int | None = None
    launch_ahead: int | None = None
    end_latency: int | None = None
    cta_interval: int | None = None
    concurrent_kernels: int | None = None
    in_order: bool | None = None
    units: SchedulerUnits | None = None
    limits: SchedulerLimits | None = None

class L2SliceCache(Spec):
    size: int | None = None
    line: int | None = None
    ways: int | None = None
    sectored: bool | None = None
    replacement: str | None = None
    write: str | None = None
    allocate_on_write: bool | None = None
    tag_latency: int | None = None
    data_latency: int | None = None
    outstanding_misses: int | None = None
    merged_misses: int | None = None
    banks: int | None = None
    ports: int | None = None
    hash_index: bool | None = None
    classify_misses: bool | None = None

class L2Slice(Spec):
    clock: int | None = None
    cache: L2SliceCache | None = None
    width: int | None = None
    write_interval: int | None = None
    atomic_latency: int | None = None
    atomic_interval: int | None = None
    outstanding_writes: int | None = None
    dirty_ways: int | None = None
    fetch_granularity: int | None = None

class GpuChannel(Spec):
    backend: str | None = None
    latency: int | None = None
    bandwidth: int | None = None
    clock: int | None = None
    ranks: int | None = None
    bank_groups: int | None = None
    banks: int | None = None
    rows: int | None = None
    row_bytes: int | None = None
    burst_bytes: int | None = None
    burst_cycles: int | None = None
    separate_row_bus: bool | None = None
    mapping: str | None = None
    bank_xor: bool | None = None
    trcd: int | None = None
    trcd_write: int | None = None
    trp: int | None = None
    tras: int | None = None
    trc: int | None = None
    tcl: int | None = None
    tcwl: int | None = None
    tccd_s: int | None = None
    tccd_l: int | None = None
    trrd_s: int | None = None
    trrd_l: int | None = None
    tfaw: int | None = None
    twtr_s: int | None = None
    twtr_l: int | None = None
    trtp: int | None = None
    twr: int | None = None
    turnaround: int | None = None
    trtrs: int | None = None
    trfc: int | None = None
    trefi: int | None = None
    refresh_by_bank: bool | None = None
    read_queue: int | None = None
    write_queue: int | None = None
    write_high: int | None = None
    write_low: int | None = None
    closed_page: bool | None = None
    starvation_limit: int | None = None

class CopyEngine(Spec):
    page_size: int | None = None
    pages_in_flight: int | None = None
    pages_ahead: int | None = None
    through_l2: bool | None = None
    outstanding_lines: int | None = None

class UvmModel(Spec):
    kind: str | None = None
    clock: int | None = None
    walk_latency: int | None = None
    walkers: int | None = None
    l2_tlb_entries: int | None = None
    l2_tlb_latency: int | None = None
    outstanding_faults: int | None = None
    mapping: str | None = None
    shootdown: str | None = None
    fault_interval: int | None = None
    remote_latency: int | None = None
    capacity: int | None = None
    first_touch: bool | None = None
    handling: str | None = None
    fault_latency: int | None = None
    batch_size: int | None = None
    batch_latency: int | None = None
    fetch_latency: int | None = None
    kilobyte_latency: int | None = None
    fault_cost: int | None = None
    run_cost: int | None = None
    block_latency: int | None = None
    partial_block_latency: int | None = None
    scattered_latency: int | None = None
    cold_latency: int | None = None
    replay: str | None = None
    curve: str | None = None
    times_to_device: str | None = None
    times_to_host: str | None = None
    peak_bandwidth: int | None = None
    steepness: float | None = None
    transfer_latency: int | None = None
    bandwidth: int | None = None
    prefetcher: str | None = None
    oversubscribed_prefetcher: str | None = None
    eviction: str | None = None
    recency: str | None = None
    frames: str | None = None
    free_share: float | None = None
    reserved_share: float | None = None
    drop_clean: bool | None = None
    remote: str | None = None
    remote_threshold: int | None = None
    remote_penalty: int | None = None
    host_fault_latency: int | None = None
    host_granularity: int | None = None
    log_rows: int | None = None

class SharedSliceCache(Spec):
    size: int | None = None
    line: int | None = None
    ways: int | None = None
    sectored: bool | None = None
    replacement: str | None = None
    write: str | None = None
    allocate_on_write: bool | None = None
    tag_latency: int | None = None
    data_latency: int | None = None
    outstanding_misses: int | None = None
    merged_misses: int | None = None
    banks: int | None = None
    ports: int | None = None
    hash_index: bool | None = None
    classify_misses: bool | None = None

class SharedSlice(Spec):
    clock: int | None = None
    cache: SharedSliceCache | None = None
    inclusive: bool | None = None
    width: int | None = None
    write_interval: int | None = None
    atomic_latency: int | None = None
    atomic_interval: int | None = None
    outstanding_writes: int | None = None
    dirty_ways: int | None = None
    fetch_granularity: int | None = None

class InterconnectModel(Spec):
    clock: int | None = None
    flit: int | None = None
    input_ports: int | None = None
    output_ports: int | None = None
    traversal: int | None = None
    stops: int | None = None
    hop: int | None = None
    stop_latency: int | None = None
    requester_positions: str | None = None
    responder_positions: str | None = None
    width: int | None = None
    height: int | None = None
    router: int | None = None
    link: int | None = None
    credit: int | None = None
    depth: int | None = None
    share_routers: bool | None = None
    sockets: int | None = None
    placement: str | None = None
    page_size: int | None = None
    crossing_latency: int | None = None
    crossing_bandwidth: int | None = None

class DramChannelModel(Spec):
    backend: str | None = None
    latency: int | None = None
    bandwidth: int | None = None
    clock: int | None = None
    ranks: int | None = None
    bank_groups: int | None = None
    banks: int | None = None
    rows: int | None = None
    row_bytes: int | None = None
    burst_bytes: int | None = None
    burst_cycles: int | None = None
    separate_row_bus: bool | None = None
    mapping: str | None = None
    bank_xor: bool | None = None
    trcd: int | None = None
    trcd_write: int | None = None
    trp: int | None = None
    tras: int | None = None
    trc: int | None = None
    tcl: int | None = None
    tcwl: int | None = None
    tccd_s: int | None = None
    tccd_l: int | None = None
    trrd_s: int | None = None
    trrd_l: int | None = None
    tfaw: int | None = None
    twtr_s: int | None = None
    twtr_l: int | None = None
    trtp: int | None = None
    twr: int | None = None
    turnaround: int | None = None
    trtrs: int | None = None
    trfc: int | None = None
    trefi: int | None = None
    refresh_by_bank: bool | None = None
    read_queue: int | None = None
    write_queue: int | None = None
    write_high: int | None = None
    write_low: int | None = None
    closed_page: bool | None = None
    starvation_limit: int | None = None

class GeneratorCore(Spec):
    clock: int = 0
    window: int = 0
    interval: int = 0
    writeback_buffer: int = 0
    home_hash: str = ""

class L1(Spec):
    size: int = 0
    line: int = 0
    ways: int = 0
    sectored: bool = False
    replacement: str = ""
    write: str = ""
    allocate_on_write: bool = False
    tag_latency: int = 0
    data_latency: int = 0
    outstanding_misses: int = 0
    merged_misses: int = 0
    banks: int = 0
    ports: int = 0
    hash_index: bool = False
    classify_misses: bool = False

class L2(Spec):
    size: int = 0
    line: int = 0
    ways: int = 0
    sectored: bool = False
    replacement: str = ""
    write: str = ""
    allocate_on_write: bool = False
    tag_latency: int = 0
    data_latency: int = 0
    outstanding_misses: int = 0
    merged_misses: int = 0
    banks: int = 0
    ports: int = 0
    hash_index: bool = False
    classify_misses: bool = False

class Prefetcher(Spec):
    kind: str = ""
    line_size: int = 0
    page_size: int = 0
    degree: int = 0
    distance: int = 0
    entries: int = 0
    confidence: int = 0
    window: int = 0

class TranslationL1(Spec):
    entries: int = 0
    ways: int = 0
    page_size: int = 0
    latency: int = 0

class TranslationL2(Spec):
    entries: int = 0
    ways: int = 0
    page_size: int = 0
    latency: int = 0

class TranslationWalkCache(Spec):
    entries: int = 0
    ways: int = 0
    latency: int = 0

class TranslationPageTable(Spec):
    levels: int = 0
    bits_per_level: int = 0
    page_size: int = 0
    demand: bool = False

class Translation(Spec):
    enabled: bool = False
    l1: TranslationL1 = TranslationL1()
    l2: TranslationL2 = TranslationL2()
    walk_cache: TranslationWalkCache = TranslationWalkCache()
    page_table: TranslationPageTable = TranslationPageTable()
    memory_size: int = 0
    placement: str = ""

class Pattern(Spec):
    pattern: str = ""
    accesses: int = 0
    footprint: int = 0
    stride: int = 0
    size: int = 0
    writes: float = 0.0
    atomics: float = 0.0

class FabricTopology(Spec):
    kind: str = ""
    nodes_per_switch: int = 0
    links: str = ""
    groups: int = 0
    group_switches: int = 0
    global_links: int = 0
    shape: str = ""
    roots: int = 0
    nodes: int = 0
    rails: int = 0

class FabricLink(Spec):
    bandwidth: int = 0
    latency: int = 0
    global_bandwidth: int = 0
    global_latency: int = 0

class FabricSwitch(Spec):
    latency: int = 0
    buffer: int = 0
    queues: str = ""

class FabricNic(Spec):
    bandwidth: int = 0
    latency: int = 0
    gap: int = 0
    order: str = ""

class FabricPacket(Spec):
    payload: int = 0
    header: int = 0

class FabricRouting(Spec):
    algorithm: str = ""
    ugal_bias: float = 0.0

class Fabric(Spec):
    fidelity: str = ""
    train: int = 0
    load_interval: int = 0
    topology: FabricTopology = FabricTopology()
    link: FabricLink = FabricLink()
    switch: FabricSwitch = FabricSwitch()
    nic: FabricNic = FabricNic()
    packet: FabricPacket = FabricPacket()
    routing: FabricRouting = FabricRouting()

class MpiLocal(Spec):
    latency: int = 0
    bandwidth: int = 0
    send_overhead: int = 0
    receive_overhead: int = 0
    send_overhead_per_byte: int = 0
    receive_overhead_per_byte: int = 0
    eager_limit: int = 0

class Mpi(Spec):
    send_overhead: int = 0
    receive_overhead: int = 0
    send_overhead_per_byte: int = 0
    receive_overhead_per_byte: int = 0
    post_overhead: int = 0
    latency: int = 0
    copy_bandwidth: int = 0
    match_overhead: int = 0
    poll_overhead: int = 0
    control_overhead: int = 0
    page_overhead: int = 0
    control_bytes: int = 0
    eager_limit: int = 0
    window: int = 0
    offload: bool = False
    reduction_bandwidth: int = 0
    collectives: str = ""
    segment: int = 0
    local: MpiLocal = MpiLocal()
