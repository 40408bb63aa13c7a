// SPDX-License-Identifier: Apache-2.0
#include "mpi/program/program.hpp"

#include <algorithm>
#include <stdexcept>

namespace manyscale::mpi {

namespace {

constexpr std::uint32_t most_slots = 1'000'000;

// Which operands a kind of operation must have.
enum Operand : unsigned { peer = 1, tag = 2, bytes = 4, slot = 8, count = 16, other = 32, target = 64 };

struct KindInfo {
  OperationKind kind;
  std::string_view name;
  unsigned operands;
};

constexpr std::array kind_infos{
    KindInfo{OperationKind::end, "end", 0},
    KindInfo{OperationKind::loop_begin, "loop_begin", count | target},
    KindInfo{OperationKind::loop_end, "loop_end", target},
    KindInfo{OperationKind::branch, "branch", target},
    KindInfo{OperationKind::compute, "compute", bytes},
    KindInfo{OperationKind::draw, "draw", bytes | slot},
    KindInfo{OperationKind::send, "send", peer | tag | bytes},
    KindInfo{OperationKind::synchronous_send, "synchronous_send", peer | tag | bytes},
    KindInfo{OperationKind::receive, "receive", peer | tag},
    KindInfo{OperationKind::send_receive, "send_receive", peer | tag | bytes | other},
    KindInfo{OperationKind::isend, "isend", peer | tag | bytes | slot},
    KindInfo{OperationKind::issend, "issend", peer | tag | bytes | slot},
    KindInfo{OperationKind::ireceive, "ireceive", peer | tag | slot},
    KindInfo{OperationKind::send_init, "send_init", peer | tag | bytes | slot},
    KindInfo{OperationKind::receive_init, "receive_init", peer | tag | slot},
    KindInfo{OperationKind::start, "start", slot},
    KindInfo{OperationKind::wait, "wait", slot},
    KindInfo{OperationKind::waitall, "waitall", slot | count},
    KindInfo{OperationKind::waitany, "waitany", slot | count},
    KindInfo{OperationKind::waitsome, "waitsome", slot | count},
    KindInfo{OperationKind::test, "test", slot},
    KindInfo{OperationKind::testall, "testall", slot | count},
    KindInfo{OperationKind::testany, "testany", slot | count},
    KindInfo{OperationKind::testsome, "testsome", slot | count},
    KindInfo{OperationKind::probe, "probe", peer | tag},
    KindInfo{OperationKind::iprobe, "iprobe", peer | tag},
    KindInfo{OperationKind::request_free, "request_free", slot},
    KindInfo{OperationKind::barrier, "barrier", 0},
    KindInfo{OperationKind::broadcast, "broadcast", peer | bytes},
    KindInfo{OperationKind::reduce, "reduce", peer | bytes},
    KindInfo{OperationKind::allreduce, "allreduce", bytes},
    KindInfo{OperationKind::gather, "gather", peer | bytes},
    KindInfo{OperationKind::scatter, "scatter", peer | bytes},
    KindInfo{OperationKind::allgather, "allgather", bytes},
    KindInfo{OperationKind::alltoall, "alltoall", bytes},
    KindInfo{OperationKind::alltoallv, "alltoallv", bytes},
    KindInfo{OperationKind::reduce_scatter, "reduce_scatter", bytes},
    KindInfo{OperationKind::scan, "scan", bytes},
    KindInfo{OperationKind::exscan, "exscan", bytes},
};
static_assert(kind_infos.size() == kind_count);

// Checks a program operation by operation; keeps where it is for the messages.
class Checker {
 public:
  explicit Checker(Program& program) : program_(program) {}

  void run() {
    if (program_.ranks == 0) throw std::invalid_argument("a job needs at least one rank");
    if (program_.ranks > (1u << 28)) throw std::invalid_argument("a job has at most 268,435,456 ranks");
    if (program_.operations.size() > 0x7fffffffu) throw std::invalid_argument("too many operations");
    if (program_.communicators.empty()) throw std::invalid_argument("communicator 0 must be the world");
    if (program_.communicators.size() > 0x7fffu) throw std::invalid_argument("at most 32,767 communicators");
    for (Column& column : program_.columns) check_column(column);
    check_patterns();
    enclosing_.resize(program_.operations.size() + 1, -1);
    find_loops();
    for (at_ = 0; at_ < program_.operations.size(); ++at_) check_operation(program_.operations[at_]);
    if (program_.slots > most_slots) throw std::invalid_argument("at most 1,000,000 request slots per rank");
    check_entry();
    if (program_.dependencies.unordered) check_dependencies();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("operation " + std::to_string(at_) + " (" +
                                std::string(kind_name(program_.operations[at_].kind)) + "): " + what);
  }

  void check_column(Column& c) {
    const auto number = std::to_string(&c - program_.columns.data());
    const auto fail_column = [&](const std::string& what) {
      throw std::invalid_argument("column " + number + ": " + what);
    };
    if (c.modulus < 0) fail_column("the modulus is negative");
    if (c.period < 1) fail_column("the period must be at least 1");
    if (c.loop < Column::peer_index) fail_column("no loop has the depth " + std::to_string(c.loop));
    if (c.array >= 0) {
      if (static_cast<std::size_t>(c.array) >= program_.arrays.size()) fail_column("there is no such array");
      const auto& array = program_.arrays[static_cast<std::size_t>(c.array)];
      const auto size = std::visit([](const auto& values) { return values.size(); }, array);
      // With these limits the sum below stays under 2^63.
      const std::int64_t limit = std::int64_t{1} << 31;
      if (c.array_stride < 0 || c.iteration_stride < 0 || c.array_stride > limit ||
          c.iteration_stride > limit || c.period > limit) {
        fail_column("strides and period must lie between 0 and 2^31");
      }
      const auto last_element =
          static_cast<std::uint64_t>(program_.ranks - 1) * static_cast<std::uint64_t>(c.array_stride) +
          static_cast<std::uint64_t>(c.period - 1) * static_cast<std::uint64_t>(c.iteration_stride);
      if (last_element >= size) {
        fail_column("its array has " + std::to_string(size) + " elements, too few for " +
                    std::to_string(program_.ranks) + " ranks");
      }
    }
    c.plain = c.array < 0 && c.rank_step == 0 && c.loop_step == 0;
    if (c.plain && c.modulus > 0) {
      c.constant = (c.constant % c.modulus + c.modulus) % c.modulus;
      c.modulus = 0;
    }
  }

  void check_patterns() const {
    for (const ComputePattern& pattern : program_.patterns) {
      if (pattern.sequence.empty() || pattern.clusters.empty())
        throw std::invalid_argument("a compute pattern needs a sequence and clusters");
      for (const std::uint32_t cluster : pattern.sequence) {
        if (cluster >= pattern.clusters.size())
          throw std::invalid_argument("a compute pattern names cluster " + std::to_string(cluster) + " of " +
                                      std::to_string(pattern.clusters.size()));
      }
      for (const Distribution& d : pattern.clusters) {
        const std::size_t bins = d.cumulative.size();
        if (bins == 0 || bins > Distribution::most_bins || d.low.size() != bins || d.high.size() != bins)
          throw std::invalid_argument(
              "a distribution has 1 to 100 bins, each with a low, a high and a weight");
        for (std::size_t i = 0; i < bins; ++i) {
          const double before = i == 0 ? 0 : d.cumulative[i - 1];
          if (d.low[i] < 0 || d.high[i] < d.low[i] || !(d.cumulative[i] >= before))
            throw std::invalid_argument("a bin's times must be ordered and its weight must not be negative");
        }
        if (!(d.cumulative.back() > 0 && d.cumulative.back() < 1e300))
          throw std::invalid_argument("the weights of a distribution must add up to more than 0");
      }
    }
  }

  // Pairs loop_begin and loop_end and notes for each operation the loop around it.
  void find_loops() {
    auto& operations = program_.operations;
    std::vector<std::int32_t> open;
    depth_.assign(operations.size() + 1, 0);
    for (at_ = 0; at_ < operations.size(); ++at_) {
      Operation& operation = operations[at_];
      if (operation.kind == OperationKind::loop_end) {
        if (open.empty()) fail("no loop is open here");
        const std::int32_t begin = open.back();
        open.pop_back();
        operation.target = begin;
        operations[static_cast<std::size_t>(begin)].target = static_cast<std::int32_t>(at_);
      }
      enclosing_[at_] = open.empty() ? -1 : open.back();
      depth_[at_] = static_cast<std::int32_t>(open.size());
      operation.depth = static_cast<std::uint32_t>(open.size());
      if (operation.kind == OperationKind::loop_begin) {
        open.push_back(static_cast<std::int32_t>(at_));
        program_.depth = std::max(program_.depth, static_cast<std::uint32_t>(open.size()));
      }
    }
    if (!open.empty()) {
      at_ = static_cast<std::size_t>(open.back());
      fail("its loop is never closed");
    }
    if (program_.depth > 64) throw std::invalid_argument("loops are nested more than 64 deep");
  }

  void check_operation(Operation& o) {
    if (static_cast<std::size_t>(o.kind) >= kind_count) throw std::invalid_argument("unknown operation");
    const unsigned needs = kind_infos[static_cast<std::size_t>(o.kind)].operands;
    const auto need = [&](unsigned operand, std::int32_t column, const char* name) {
      if ((needs & operand) != 0 && column < 0) fail(std::string("needs '") + name + "'");
    };
    need(peer, o.peer, "peer");
    need(tag, o.tag, "tag");
    need(bytes, o.bytes, "bytes");
    need(slot, o.slot, "slot");
    need(count, o.count, "count");
    need(other, o.from, "from");
    need(other, o.receive_tag, "receive_tag");
    need(target, o.target, "target");
    for (const std::int32_t column :
         {o.mask, o.peer, o.tag, o.bytes, o.slot, o.count, o.from, o.receive_tag, o.receive_bytes}) {
      check_operand(o, column);
    }
    if (o.communicator >= program_.communicators.size())
      fail("there is no communicator " + std::to_string(o.communicator));
    if (o.kind == OperationKind::branch) check_branch(o);
    if (o.slot >= 0) note_slot(o);
  }

  void check_operand(const Operation& o, std::int32_t column) const {
    if (column < 0) return;
    if (static_cast<std::size_t>(column) >= program_.columns.size())
      fail("there is no column " + std::to_string(column));
    const Column& c = program_.columns[static_cast<std::size_t>(column)];
    if (c.plain) return;
    if (c.loop >= depth_[at_])
      fail("an operand uses the loop of depth " + std::to_string(c.loop) + ", which is not around it");
    if (c.loop == Column::occurrence && (o.kind != OperationKind::compute || column != o.bytes || o.slot < 0))
      fail("only the time of a numbered compute phase can depend on its occurrence");
    if (c.loop == Column::peer_index && (o.kind != OperationKind::alltoallv || column != o.bytes))
      fail("only the bytes of alltoallv can depend on the peer");
  }

  void check_branch(const Operation& o) const {
    const auto to = static_cast<std::size_t>(o.target);
    if (to <= at_ || to > program_.operations.size()) fail("goes to an operation that does not come later");
    for (std::int32_t loop = enclosing_[at_];; loop = enclosing_[static_cast<std::size_t>(loop)]) {
      if (loop == enclosing_[to]) return;
      if (loop < 0) fail("goes into a loop");
    }
  }

  // The highest slot (or phase) an operation can name.
  void note_slot(const Operation& o) {
    const Column& c = program_.columns[static_cast<std::size_t>(o.slot)];
    std::int64_t least = 0, most = 0;
    if (c.plain) {
      least = most = c.constant;
    } else if (c.modulus > 0) {
      most = c.modulus - 1;
    } else if (c.loop_step != 0) {
      fail("a slot that changes with a loop needs a modulus");
    } else {
      for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
        for (std::int64_t i = 0; i < c.period; ++i) {
          const auto value = program_.value_at(o.slot, rank, static_cast<std::uint32_t>(i));
          least = std::min(least, value);
          most = std::max(most, value);
        }
      }
    }
    if (least < 0 || most >= most_slots) fail("slots go from 0 to 999,999");
    const bool phase = o.kind == OperationKind::compute || o.kind == OperationKind::draw;
    if (phase && !c.plain) fail("the number of a compute phase must be a constant");
    auto& highest = phase ? program_.phases : program_.slots;
    highest = std::max(highest, static_cast<std::uint32_t>(most + 1));
  }

  void check_entry() const {
    if (program_.entry < 0) return;
    if (static_cast<std::size_t>(program_.entry) >= program_.columns.size())
      throw std::invalid_argument("there is no column " + std::to_string(program_.entry) + " for the entry");
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
      const std::int64_t entry = program_.value_at(program_.entry, rank, 0);
      if (entry < 0 || static_cast<std::uint64_t>(entry) > program_.operations.size())
        throw std::invalid_argument("rank " + std::to_string(rank) +
                                    " starts at an operation that is not there");
      if (depth_[static_cast<std::size_t>(entry)] != 0)
        throw std::invalid_argument("rank " + std::to_string(rank) + " starts within a loop");
    }
  }

  void check_dependencies() {
    const auto& operations = program_.operations;
    std::vector<std::uint32_t> segment(operations.size());
    std::uint32_t number = 0;
    for (at_ = 0; at_ < operations.size(); ++at_) {
      segment[at_] = number;
      const Operation& o = operations[at_];
      if (o.kind != OperationKind::end && o.kind != OperationKind::compute && o.kind != OperationKind::send &&
          o.kind != OperationKind::receive)
        fail("operations without an order are compute, send and receive");
      if (o.mask >= 0) fail("operations without an order cannot be left out");
      if (o.kind == OperationKind::end) ++number;
    }
    if (operations.empty() || operations.back().kind != OperationKind::end)
      throw std::invalid_argument("operations without an order must come to an end");
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
      const auto entry = program_.entry < 0 ? 0 : program_.value_at(program_.entry, rank, 0);
      if (entry > 0 && operations[static_cast<std::size_t>(entry) - 1].kind != OperationKind::end)
        throw std::invalid_argument("rank " + std::to_string(rank) + " starts within a segment");
    }
    Dependencies& dependencies = program_.dependencies;
    dependencies.missing.assign(operations.size(), 0);
    list(dependencies.ended, segment, dependencies.on_end);
    list(dependencies.begun, segment, dependencies.on_begin);
  }

  // Sorts pairs by what is waited for.
  void list(const std::vector<Dependencies::Pair>& pairs, const std::vector<std::uint32_t>& segment,
            Dependencies::Lists& lists) {
    const auto& operations = program_.operations;
    lists.first.assign(operations.size() + 1, 0);
    for (const auto& [later, earlier] : pairs) {
      if (later >= operations.size() || earlier >= operations.size() || segment[later] != segment[earlier] ||
          operations[later].kind == OperationKind::end || operations[earlier].kind == OperationKind::end)
        throw std::invalid_argument("an operation waits for one that is not of its segment");
      ++program_.dependencies.missing[later];
      ++lists.first[earlier + 1];
    }
    for (std::size_t i = 0; i < operations.size(); ++i) lists.first[i + 1] += lists.first[i];
    lists.waiting.resize(pairs.size());
    std::vector<std::uint32_t> next(lists.first.begin(), lists.first.end() - 1);
    for (const auto& [later, earlier] : pairs) lists.waiting[next[earlier]++] = later;
  }

  Program& program_;
  std::size_t at_ = 0;
  std::vector<std::int32_t> enclosing_;  // the loop_begin around each operation; -1: none
  std::vector<std::int32_t> depth_;
};

}  // namespace

std::string_view kind_name(OperationKind kind) {
  const auto number = static_cast<std::size_t>(kind);
  return number < kind_infos.size() ? kind_infos[number].name : "unknown";
}

std::int64_t Program::formula(const Column& c, std::uint32_t rank, std::uint32_t iteration) const {
  // Unsigned, so that an absurd formula wraps around and is refused as a value, not undefined.
  auto value = static_cast<std::uint64_t>(c.constant) + static_cast<std::uint64_t>(c.rank_step) * rank +
               static_cast<std::uint64_t>(c.loop_step) * iteration;
  if (c.array >= 0) {
    const auto element = static_cast<std::size_t>(
        rank * c.array_stride + (c.period == 1 ? 0 : iteration % c.period * c.iteration_stride));
    const auto& array = arrays[static_cast<std::size_t>(c.array)];
    if (const auto* narrow = std::get_if<0>(&array))
      value += static_cast<std::uint64_t>((*narrow)[element]);
    else
      value += static_cast<std::uint64_t>((*std::get_if<1>(&array))[element]);
  }
  const auto result = static_cast<std::int64_t>(value);
  if (c.modulus == 0) return result;
  const std::int64_t rest = result % c.modulus;
  return rest < 0 ? rest + c.modulus : rest;
}

void Program::prepare() {
  Checker(*this).run();
}

}  // namespace manyscale::mpi
