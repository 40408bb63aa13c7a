// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/gem5_import.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace manyscale::cpu::gem5 {

namespace {

__extension__ using Wide = unsigned __int128;  // products of two 64-bit numbers

constexpr std::uint32_t strictly_ordered = 0x800;  // gem5's flag of requests that are not sent when played
constexpr std::uint64_t process_bit = std::uint64_t{1} << 40;
constexpr std::uint64_t address_mask = process_bit - 1;
constexpr std::uint64_t most_delay = std::numeric_limits<std::uint8_t>::max();
constexpr std::uint64_t most_distance = Record::furthest_producer;
constexpr std::uint32_t max_compacted = std::numeric_limits<std::uint8_t>::max();
constexpr std::uint64_t compute_latency = 1;  // of the kind that stands for all ALU instructions
constexpr std::uint64_t instruction_bytes = 4;

std::uint64_t address_of(std::uint64_t physical) {
  return process_bit | (physical & address_mask);
}

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > ~b ? ~std::uint64_t{0} : a + b;
}

}  // namespace

Importer::Importer(const ImportSpec& spec, Sink sink) : spec_(spec), sink_(std::move(sink)) {
  if (spec.ticks_per_second == 0 || spec.clock == 0) throw std::invalid_argument("a clock must run");
  index_of_.reserve(2 * window);
}

std::uint64_t Importer::cycles(std::uint64_t ticks) const {
  const auto exact = static_cast<Wide>(ticks) * spec_.clock + spec_.ticks_per_second / 2;
  const auto whole = exact / spec_.ticks_per_second;
  return whole > ~std::uint64_t{0} ? ~std::uint64_t{0} : static_cast<std::uint64_t>(whole);
}

const Importer::Past* Importer::find(std::uint64_t number) const {
  const auto found = index_of_.find(number);
  return found == index_of_.end() ? nullptr : &past_[found->second];
}

// What the node waits for: a producer that is not remembered was done long ago.
std::vector<Importer::Operand> Importer::operands_of(const Node& node, std::uint64_t delay) const {
  std::vector<Operand> found;
  for (const std::uint64_t number : node.order) {
    const Past* past = find(number);
    if (past == nullptr) continue;
    if (!past->is_load || node.type == NodeType::store) {
      found.push_back({past->record, delay});
      continue;
    }
    for (const Operand& operand : past->sent) {
      if (operand.record != none || operand.delay != 0) {
        found.push_back({operand.record, saturated_sum(operand.delay, delay)});
      }
    }
  }
  for (const std::uint64_t number : node.data) {
    // gem5 keeps one of two ties to the same node, that of order.
    if (std::find(node.order.begin(), node.order.end(), number) != node.order.end()) continue;
    if (const Past* past = find(number); past != nullptr) found.push_back({past->record, delay});
  }
  if (found.empty() && delay != 0) found.push_back({none, delay});
  return found;
}

// The youngest three; of several delays after one producer the longest.
std::array<Importer::Operand, Importer::operands> Importer::nearest(std::vector<Operand> all) {
  for (Operand& operand : all) {
    if (operand.record != none && records_ - operand.record > most_distance) operand = {};
  }
  std::sort(all.begin(), all.end(), [](const Operand& a, const Operand& b) {
    // No record at all comes last.
    const std::uint64_t first = a.record + 1, second = b.record + 1;
    return first != second ? first > second : a.delay > b.delay;
  });
  std::array<Operand, operands> kept{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i].record == all[i - 1].record) continue;
    if (all[i].record == none && all[i].delay == 0) continue;
    if (count == operands) {
      ++statistics_.dropped_producers;
      continue;
    }
    kept[count++] = all[i];
  }
  return kept;
}

void Importer::give(const Packet& packet) {
  packets_.push_back(packet);
}

bool Importer::can_take(const Node& node) const {
  return current_packet_ + 1 + packets_.size() >= packets_until(node);
}

// How many requests there are up to the one that brought this node: they are spread evenly.
std::uint64_t Importer::packets_until(const Node& node) const {
  if (spec_.packets == 0 || spec_.instructions == 0) return 0;
  const std::uint64_t last = std::min(statistics_.instructions + node.weight, spec_.instructions - 1);
  return static_cast<std::uint64_t>(static_cast<Wide>(last) * spec_.packets / spec_.instructions) + 1;
}

// Where the next instruction lies.
std::uint64_t Importer::next_pc() {
  const std::uint64_t offset = instruction_bytes * within_packet_++;
  return address_of(current_.address + (current_.size == 0 ? 0 : offset % current_.size));
}

void Importer::emit(TraceNode node) {
  node.thread = spec_.thread;
  ++records_;
  ++statistics_.nodes;
  statistics_.instructions += node.timing.instructions();
  sink_(node);
}

// A node for instructions that gem5 left out.
void Importer::emit_compacted(std::uint32_t weight) {
  TraceNode node;
  node.pc = next_pc();
  node.timing.weight = static_cast<std::uint8_t>(weight);
  emit(node);
}

void Importer::take(const Node& node) {
  if (node.weight > most_weight) {
    throw std::invalid_argument("a node stands for " + std::to_string(node.weight) + " others; at most " +
                                std::to_string(most_weight) + " can be read");
  }
  std::uint32_t weight = node.weight;
  for (const std::uint64_t wanted = packets_until(node); current_packet_ + 1 < wanted;) {
    ++current_packet_;
    if (packets_.empty()) throw std::invalid_argument("the fetch trace has fewer requests than it had");
    current_ = packets_.front();
    packets_.pop_front();
    within_packet_ = 0;
    if (current_packet_ + 1 == wanted) break;
    if (weight == 0) {
      ++statistics_.skipped_packets;
      continue;
    }
    // One of the instructions that gem5 left out touches the line.
    --weight;
    emit_compacted(0);
  }
  for (; weight > max_compacted; weight -= max_compacted + 1) {
    emit_compacted(max_compacted);
  }

  const bool played = node.type != NodeType::compute && (node.flags & strictly_ordered) == 0;
  TraceNode record;
  const bool has_pc = (node.present & field_bit(Node::pc_field)) != 0;
  record.pc = has_pc && spec_.packets == 0 ? address_of(node.pc) : next_pc();
  record.timing.weight = static_cast<std::uint8_t>(weight);
  std::uint64_t delay = cycles(node.delay);
  if (played) {
    record.kind = node.type == NodeType::load ? InstructionClass::load : InstructionClass::store;
    record.address = address_of(node.address);
    record.size = static_cast<std::uint8_t>(std::clamp<std::uint32_t>(node.size, 1, 255));
  } else {
    delay -= std::min(delay, compute_latency);
  }
  const auto kept = nearest(operands_of(node, delay));
  for (std::size_t i = 0; i < operands; ++i) {
    if (kept[i].record != none) record.producers[i] = static_cast<std::uint16_t>(records_ - kept[i].record);
    if (kept[i].delay > most_delay) ++statistics_.clipped_delays;
    record.timing.delays[i] = static_cast<std::uint8_t>(std::min(kept[i].delay, most_delay));
  }
  if (past_.size() < window) {
    past_.emplace_back();
  } else {
    const auto old = index_of_.find(past_[next_past_].number);
    if (old != index_of_.end() && old->second == next_past_) index_of_.erase(old);
  }
  past_[next_past_] = {node.number, records_, record.kind == InstructionClass::load, kept};
  index_of_[node.number] = next_past_;
  next_past_ = (next_past_ + 1) % window;
  emit(record);
}

void Importer::finish() {
  ++statistics_.nodes;
  sink_(sync_node(SyncKind::thread_end, spec_.thread, spec_.thread));
}

}  // namespace manyscale::cpu::gem5
