// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/gem5_export.hpp"

#include <algorithm>
#include <stdexcept>

namespace manyscale::cpu::gem5 {

namespace {

constexpr std::uint64_t first_process = std::uint64_t{1} << 40;
constexpr std::uint32_t read_request = 1;
constexpr std::uint32_t instruction_fetch = 0x100;  // gem5's flag of such requests

// The first process has addresses as it sees them.
std::uint64_t physical(std::uint64_t address) {
  return address - std::min(address, first_process);
}

}  // namespace

Exporter::Exporter(const ExportSpec& spec, NodeSink nodes, PacketSink packets)
    : spec_(spec), nodes_(std::move(nodes)), packets_(std::move(packets)), numbers_(remembered) {
  if (spec.latencies.size() != instruction_classes)
    throw std::invalid_argument("each instruction class needs a latency");
  if (spec.line == 0 || (spec.line & (spec.line - 1)) != 0) {
    throw std::invalid_argument("a line has a power of two of bytes");
  }
}

bool Exporter::within_window(std::uint64_t number) const {
  return number != 0 && instructions_ - number < spec_.window;
}

void Exporter::fetch(const Record& record) {
  const std::uint64_t line = physical(record.pc) & ~std::uint64_t{spec_.line - 1};
  if (line == last_line_) return;
  last_line_ = line;
  Packet packet;
  packet.tick = instructions_ * spec_.ticks_per_cycle;
  packet.command = read_request;
  packet.address = line;
  packet.size = spec_.line;
  packet.flags = instruction_fetch;
  packet.present = field_bit(Packet::flags_field);
  packets_(packet);
}

void Exporter::take(const TraceNode& record) {
  if (record.kind == InstructionClass::marker) return;
  const std::uint64_t mine = records_++;
  std::uint64_t& number = numbers_[mine % remembered];
  if (record.kind == InstructionClass::system) {
    number = 0;
    left_out_ += record.timing.instructions();
    instructions_ += record.timing.instructions();
    return;
  }
  instructions_ += record.timing.weight;
  fetch(record);
  ++instructions_;
  Node node;
  node.number = instructions_;
  node.weight = left_out_ + record.timing.weight;
  left_out_ = 0;
  node.present = field_bit(Node::pc_field);
  if (node.weight != 0) node.present |= field_bit(Node::weight_field);
  node.pc = physical(record.pc);
  std::uint64_t delay = 0;
  for (std::size_t i = 0; i < record.producers.size(); ++i) {
    delay = std::max<std::uint64_t>(delay, record.timing.delays[i]);
    const std::uint16_t distance = record.producers[i];
    // What counts from a dispatch has no counterpart there: such a delay counts from the node's own.
    if (distance == 0 || distance > mine || record.timing.counts_from_dispatch(i)) continue;
    const std::uint64_t producer = numbers_[(mine - distance) % remembered];
    if (within_window(producer) &&
        std::find(node.data.begin(), node.data.end(), producer) == node.data.end()) {
      node.data.push_back(producer);
    }
  }
  if (record.touches_memory()) {
    node.type = record.kind == InstructionClass::store ? NodeType::store : NodeType::load;
    node.address = physical(record.address);
    node.size = record.size;
    node.present |=
        field_bit(Node::address_field) | field_bit(Node::size_field) | field_bit(Node::flags_field);
    if (node.type == NodeType::store) {
      for (const std::uint64_t before : {last_store_, last_load_}) {
        if (within_window(before)) node.order.push_back(before);
      }
      last_store_ = node.number;
    } else {
      last_load_ = node.number;
    }
  } else {
    node.type = NodeType::compute;
    delay += spec_.latencies[static_cast<std::size_t>(record.kind)];
  }
  node.delay = delay * spec_.ticks_per_cycle;
  number = node.number;
  nodes_(node);
}

}  // namespace manyscale::cpu::gem5
