// SPDX-License-Identifier: Apache-2.0
#include "gpu/sm/execution_pipes.hpp"

namespace manyscale::gpu {

PipeTable::PipeTable(const SmSpec& spec) {
  using enum InstructionKind;
  const auto set = [&](InstructionKind kind, Pipe pipe, const InstructionTiming& timing) {
    pipe_of_[index(kind)] = pipe;
    timing_[index(kind)] = timing;
  };
  const SmTimings& t = spec.timing;
  set(integer, Pipe::alu, t.integer);
  set(logic, Pipe::alu, t.logic);
  set(multiply_add, Pipe::fma, t.multiply_add);  // IMAD runs on the FMA pipe
  set(multiply_wide, Pipe::fma, t.multiply_wide);
  set(fp32, Pipe::fma, t.fp32);
  set(fp16, Pipe::fma, t.fp16);
  set(fp64, Pipe::fp64, t.fp64);
  set(special_function, Pipe::xu, t.special_function);
  set(convert, Pipe::xu, t.convert);
  set(tensor_half, Pipe::tensor, t.tensor_half);
  set(tensor_integer, Pipe::tensor, t.tensor_integer);
  set(tensor_double, Pipe::tensor, t.tensor_double);
  set(move_special, Pipe::other, t.move_special);
  for (const InstructionKind kind :
       {load_global, store_global, load_local, store_local, load_shared, store_shared, load_constant,
        atomic_global, reduce_global, atomic_shared, texture})
    set(kind, Pipe::lsu, {spec.l1.hit_latency, 1});
  set(shuffle, Pipe::lsu, t.shuffle);
  set(vote, Pipe::other, t.vote);
  set(branch, Pipe::cbu, t.branch);
  set(barrier, Pipe::cbu, t.barrier);
  set(fence, Pipe::cbu, t.fence);
  set(InstructionKind::exit, Pipe::cbu, t.branch);
  set(other, Pipe::other, t.other);

  for (const InstructionKind kind : {load_global, load_local, texture})
    resource_[index(kind)] = MemoryResource::line;
  for (const InstructionKind kind : {store_global, store_local, reduce_global})
    resource_[index(kind)] = MemoryResource::store;

  for (const Pipe from : {Pipe::alu, Pipe::fma}) {
    auto& latencies = crossing_[static_cast<std::size_t>(from)];
    for (const Pipe to : {Pipe::alu, Pipe::fma, Pipe::fp64})
      latencies[static_cast<std::size_t>(to)] = to == from ? 0 : t.other_unit;
    for (const Pipe to : {Pipe::lsu, Pipe::xu, Pipe::tensor})
      latencies[static_cast<std::size_t>(to)] = t.queued_unit;
  }
}

}  // namespace manyscale::gpu
