// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/gem5_stream.hpp"

#include <utility>

#include "cpu/trace/block.hpp"

namespace manyscale::cpu::gem5 {

void StreamImport::take_nodes(std::span<const std::uint8_t> piece) {
  node_messages_.take(piece, [this](Node&& node) { waiting_.push_back(std::move(node)); });
  advance();
}

void StreamImport::take_packets(std::span<const std::uint8_t> piece) {
  packet_messages_.take(piece, [this](Packet&& packet) { given_.push_back(packet); });
  advance();
}

void StreamImport::finish() {
  node_messages_.finish();
  if (spec_.packets != 0) packet_messages_.finish();
  if (!waiting_.empty()) throw FormatError(0, "the fetch trace changed while it was read");
  begin();
  importer_->finish();
  close_block();
}

void StreamImport::begin() {
  if (importer_) return;
  spec_.ticks_per_second = node_messages_.header()->ticks_per_second;
  importer_ = std::make_unique<Importer>(spec_, [this](const TraceNode& node) {
    nodes_.push_back(node);
    if (nodes_.size() == block_nodes) close_block();
  });
}

void StreamImport::advance() {
  if (!node_messages_.header()) return;
  begin();
  for (; !given_.empty(); given_.pop_front()) importer_->give(given_.front());
  for (; !waiting_.empty() && importer_->can_take(waiting_.front()); waiting_.pop_front()) {
    importer_->take(waiting_.front());
  }
}

void StreamImport::close_block() {
  if (nodes_.empty()) return;
  std::uint64_t instructions = 0;
  for (const TraceNode& node : nodes_) instructions += node.is_sync() ? 0u : node.timing.instructions();
  complete_.push_back({encode_block(nodes_), nodes_.size(), instructions});
  nodes_.clear();
}

StreamExport::StreamExport(const ExportSpec& spec)
    : exporter_(
          spec, [this](const Node& node) { write_node(node, pieces_.nodes); },
          [this](const Packet& packet) { write_packet(packet, pieces_.packets); }) {}

StreamExport::Pieces StreamExport::take(std::vector<std::uint8_t> block) {
  BlockReader reader(std::move(block));
  while (reader.left() > 0) exporter_.take(reader.next());
  return std::exchange(pieces_, {});
}

}  // namespace manyscale::cpu::gem5
