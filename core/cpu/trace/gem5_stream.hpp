// SPDX-License-Identifier: Apache-2.0
// Streams of gem5's elastic traces, piece by piece: from files of messages to blocks of nodes, and back.
// Files come and go unpacked.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cpu/trace/gem5_export.hpp"
#include "cpu/trace/gem5_import.hpp"
#include "cpu/trace/gem5_messages.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu::gem5 {

// The messages of one file, after its header, as its pieces come.
template <class Message, Header (*ParseHeader)(const MessageSplitter::Message&),
          Message (*Parse)(const MessageSplitter::Message&)>
class MessageReader {
 public:
  // Calls each(message) for every message that the piece completes. Throws FormatError.
  template <class Take>
  void take(std::span<const std::uint8_t> piece, Take&& each) {
    splitter_.give(piece);
    MessageSplitter::Message message{};
    while (splitter_.next(message)) {
      if (header_) {
        each(Parse(message));
      } else {
        header_ = ParseHeader(message);
      }
    }
  }
  void finish() const {
    splitter_.finish();
    if (!header_) throw FormatError(4, "it ends before its header");
  }
  const std::optional<Header>& header() const { return header_; }

 private:
  MessageSplitter splitter_;
  std::optional<Header> header_;
};

using NodeMessages = MessageReader<Node, parse_dependence_header, parse_node>;
using PacketMessages = MessageReader<Packet, parse_packet_header, parse_packet>;

// From the pieces of a data-dependency trace, and of a fetch trace if there is one, to blocks of a stream.
class StreamImport {
 public:
  struct Block {
    std::vector<std::uint8_t> bytes;
    std::size_t nodes = 0;
    std::uint64_t instructions = 0;
  };

  // The ticks per second of the spec come from the trace itself.
  explicit StreamImport(const ImportSpec& spec) : spec_(spec) {}

  void take_nodes(std::span<const std::uint8_t> piece);
  void take_packets(std::span<const std::uint8_t> piece);
  // Nodes wait for requests of the fetch trace.
  bool wants_packets() const { return !waiting_.empty(); }
  // Both files have ended. Throws FormatError where they end too early.
  void finish();
  // The blocks that became complete since the last call.
  std::vector<Block> take_blocks() { return std::exchange(complete_, {}); }
  ImportStatistics statistics() const { return importer_ ? importer_->statistics() : ImportStatistics{}; }

 private:
  void begin();
  void advance();
  void close_block();

  ImportSpec spec_;
  NodeMessages node_messages_;
  PacketMessages packet_messages_;
  std::deque<Node> waiting_;
  std::deque<Packet> given_;
  std::unique_ptr<Importer> importer_;
  std::vector<TraceNode> nodes_;
  std::vector<Block> complete_;
};

// From blocks of a stream to pieces of a data-dependency trace and of a fetch trace.
class StreamExport {
 public:
  struct Pieces {
    std::vector<std::uint8_t> nodes, packets;
  };

  explicit StreamExport(const ExportSpec& spec);
  StreamExport(const StreamExport&) = delete;
  StreamExport& operator=(const StreamExport&) = delete;

  // Throws BlockError.
  Pieces take(std::vector<std::uint8_t> block);

 private:
  Pieces pieces_;
  Exporter exporter_;
};

}  // namespace manyscale::cpu::gem5
