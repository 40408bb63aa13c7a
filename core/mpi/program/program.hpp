// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job do: one list of operations for all of them, whose operands are columns (a value for
// all ranks, one per rank, or a formula of rank and loop iteration). Loops stay loops. A program is made
// once, checked, and then shared by all ranks on all threads; it never changes during a run.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/time.hpp"
#include "mpi/program/communicator.hpp"
#include "mpi/program/compute_pattern.hpp"

namespace manyscale::mpi {

// Values of a peer or tag column that mean something else than a rank or tag.
inline constexpr std::int64_t nobody = -1;  // MPI_PROC_NULL: the operation is done at once
inline constexpr std::int64_t any = -2;     // MPI_ANY_SOURCE, MPI_ANY_TAG
inline constexpr std::int64_t last = -3;    // source or tag of the rank's last completed receive or probe

// An operand: constant + array[…] + rank_step * rank + loop_step * iteration, modulo `modulus` if that is not
// 0. The element of the array is [rank * array_stride + iteration % period * iteration_stride].
struct Column {
  std::int64_t constant = 0;
  std::int64_t rank_step = 0;
  std::int64_t loop_step = 0;
  std::int64_t modulus = 0;
  std::int64_t array_stride = 1;
  std::int64_t iteration_stride = 0;
  std::int64_t period = 1;
  std::int32_t array = -1;  // into Program::arrays; -1: none
  std::int32_t loop = -1;   // whose iteration: depth of an enclosing loop, 0 the outermost; -1: none
  bool plain = true;        // only the constant counts; set by Program::prepare

  static constexpr std::int32_t occurrence = -2;  // as `loop`: how often this compute phase was run before
  static constexpr std::int32_t peer_index = -3;  // as `loop`: the other rank's number, for sizes by pair
};

// What a rank can do. Operands not named are not looked at; see operation_infos().
enum class OperationKind : std::uint8_t {
  end,         // the rank is done
  loop_begin,  // `count` times what follows up to `target`, a loop_end
  loop_end,    // `target` is its loop_begin
  branch,      // goes to `target` when the mask is 0, or always without a mask
  compute,     // for `bytes` femtoseconds; `slot` numbers the phase where an occurrence is used
  draw,  // for a time drawn from pattern number `bytes`, times `count` millionths if given; `slot` numbers
         // the phase
  send,
  synchronous_send,
  receive,
  send_receive,  // peer, tag, bytes to send; from, receive_tag, receive_bytes to receive
  isend,
  issend,
  ireceive,
  send_init,  // persistent requests: made here, run by start
  receive_init,
  start,    // `count` persistent requests from `slot` on
  wait,     // one request
  waitall,  // `count` slots from `slot` on; empty slots do not count
  waitany,
  waitsome,
  test,  // looks once and goes on
  testall,
  testany,
  testsome,
  probe,
  iprobe,
  request_free,
  barrier,
  broadcast,
  reduce,
  allreduce,
  gather,  // `bytes` is the contribution of each rank, so that gatherv is gather with a per-rank column
  scatter,
  allgather,
  alltoall,
  alltoallv,       // `bytes` is by rank and peer: its column's iteration is the peer (Column::peer_index)
  reduce_scatter,  // `bytes` is what each rank gets
  scan,
  exscan,
};
inline constexpr std::size_t kind_count = static_cast<std::size_t>(OperationKind::exscan) + 1;

struct Operation {
  OperationKind kind = OperationKind::end;
  std::uint8_t algorithm = 0;  // of a collective: 0 leaves the choice to the library; see algorithm_infos()
  std::uint16_t communicator = 0;  // 0 is the world; peers are ranks of the communicator
  // Columns, -1 where there is none. A rank whose mask is 0 skips the operation.
  std::int32_t mask = -1;
  std::int32_t peer = -1;  // destination, source or root
  std::int32_t tag = -1;
  std::int32_t bytes = -1;
  std::int32_t slot = -1;  // request; of a collective: makes it non-blocking
  std::int32_t count = -1;
  std::int32_t from = -1;
  std::int32_t receive_tag = -1;
  std::int32_t receive_bytes = -1;
  std::int32_t target = -1;  // an operation, not a column
  std::uint32_t depth = 0;   // of a loop: how many are around it; set by Program::prepare
};

// How operations are written from outside: an array with one row per operation and these columns.
inline constexpr std::array<std::string_view, 13> operation_fields{
    "kind", "algorithm", "communicator", "mask",        "peer",          "tag",   "bytes",
    "slot", "count",     "from",         "receive_tag", "receive_bytes", "target"};

std::string_view kind_name(OperationKind kind);

// What operations wait for where those of a rank have no fixed order but begin as soon as they can: pairs of
// an operation and one of the same segment (up to an `end`) that must have ended, or begun, before it begins.
struct Dependencies {
  struct Pair {
    std::uint32_t later = 0, earlier = 0;
  };
  std::vector<Pair> ended, begun;
  bool unordered = false;  // otherwise operations run one after the other

  // Found by Program::prepare(): for each operation how many it waits for, and who waits for its end and for
  // its beginning, those of operation n from first[n] up to first[n + 1].
  struct Lists {
    std::vector<std::uint32_t> first, waiting;
  };
  std::vector<std::uint32_t> missing;
  Lists on_end, on_begin;
};

struct Program {
  std::uint32_t ranks = 0;
  std::vector<Operation> operations;
  std::vector<Column> columns;
  std::vector<std::variant<std::vector<std::int32_t>, std::vector<std::int64_t>>> arrays;
  std::vector<Communicator> communicators;
  std::vector<ComputePattern> patterns;
  std::int32_t entry = -1;  // column of each rank's first operation; -1: 0 for all
  Dependencies dependencies;

  // Found by prepare().
  std::uint32_t slots = 0;   // request slots of a rank
  std::uint32_t depth = 0;   // of nested loops
  std::uint32_t phases = 0;  // compute phases that count their occurrences

  // An operand's value for a rank whose loops are at these iterations.
  std::int64_t value(std::int32_t column, std::uint32_t rank, const std::uint32_t* iterations) const {
    const Column& c = columns[static_cast<std::size_t>(column)];
    if (c.plain) [[likely]]
      return c.constant;
    return formula(c, rank, c.loop >= 0 ? iterations[c.loop] : 0);
  }
  // The same with the iteration given, for occurrences and peers.
  std::int64_t value_at(std::int32_t column, std::uint32_t rank, std::uint32_t iteration) const {
    const Column& c = columns[static_cast<std::size_t>(column)];
    return c.plain ? c.constant : formula(c, rank, iteration);
  }

  // Checks everything once, so that running needs no checks; throws std::invalid_argument with the number of
  // the operation and what is wrong with it.
  void prepare();

 private:
  std::int64_t formula(const Column& column, std::uint32_t rank, std::uint32_t iteration) const;
};

}  // namespace manyscale::mpi
