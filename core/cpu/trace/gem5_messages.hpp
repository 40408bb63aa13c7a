// SPDX-License-Identifier: Apache-2.0
// The messages of gem5's elastic traces, from bytes and to bytes: the nodes of a data-dependency trace and
// the packets of a fetch trace. A file is the word "gem5" and then messages, each behind its length; the
// first is a header. Any bytes can be given to the reader.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace manyscale::cpu::gem5 {

// Bytes that are no such file: what is wrong, and at which byte of the file, unpacked.
class FormatError : public std::runtime_error {
 public:
  FormatError(std::uint64_t offset, const std::string& what)
      : std::runtime_error(what + ", at byte " + std::to_string(offset)), offset_(offset) {}
  std::uint64_t offset() const { return offset_; }

 private:
  std::uint64_t offset_;
};

// Numbers of fields as bits of `present`.
constexpr std::uint16_t field_bit(unsigned field) {
  return static_cast<std::uint16_t>(1u << field);
}

// The header of either kind of trace.
struct Header {
  std::string object;  // name of what recorded it
  std::uint32_t version = 0;
  std::uint64_t ticks_per_second = 0;
  std::uint32_t window = 0;  // of data-dependency traces
  bool has_version = false;
};

enum class NodeType : std::uint8_t { invalid, load, store, compute };

// An instruction of a data-dependency trace.
struct Node {
  static constexpr unsigned address_field = 3, size_field = 4, flags_field = 5, weight_field = 9,
                            pc_field = 10, virtual_address_field = 11, address_space_field = 12;

  std::uint64_t number = 0;
  NodeType type = NodeType::invalid;
  std::uint64_t address = 0;
  std::uint32_t size = 0;
  std::uint32_t flags = 0;
  std::vector<std::uint64_t> order{};  // nodes that it comes after
  std::uint64_t delay = 0;             // ticks after the last of them
  std::vector<std::uint64_t> data{};   // nodes whose results it needs
  std::uint32_t weight = 0;
  std::uint64_t pc = 0;
  std::uint64_t virtual_address = 0;
  std::uint32_t address_space = 0;
  std::uint16_t present = 0;  // which of the optional fields are there
};

// A request of a fetch trace.
struct Packet {
  static constexpr unsigned flags_field = 5, id_field = 6, pc_field = 7;

  std::uint64_t tick = 0;
  std::uint32_t command = 0;
  std::uint64_t address = 0;
  std::uint32_t size = 0;
  std::uint32_t flags = 0;
  std::uint64_t id = 0;
  std::uint64_t pc = 0;
  std::uint16_t present = 0;
};

// Cuts the bytes of a file, given piece by piece, into messages.
class MessageSplitter {
 public:
  static constexpr std::size_t most_bytes = 1 << 20;  // of a message

  struct Message {
    std::span<const std::uint8_t> bytes;
    std::uint64_t offset;  // in the file
  };

  // The next piece of the file; what was taken before is not looked at any more.
  void give(std::span<const std::uint8_t> piece);
  // The next message, if it is there in full; valid until the next piece is given. Throws FormatError.
  bool next(Message& message);
  // There are no more pieces: nothing may be left over.
  void finish() const;

 private:
  std::vector<std::uint8_t> kept_;
  std::size_t at_ = 0;        // in kept_
  std::uint64_t offset_ = 0;  // of kept_ in the file
  bool began_ = false;
};

Header parse_dependence_header(const MessageSplitter::Message& message);
Header parse_packet_header(const MessageSplitter::Message& message);
Node parse_node(const MessageSplitter::Message& message);
Packet parse_packet(const MessageSplitter::Message& message);

// Appends to the bytes of a file: the word that it begins with, or a message behind its length.
void write_magic(std::vector<std::uint8_t>& out);
void write_dependence_header(const Header& header, std::vector<std::uint8_t>& out);
void write_packet_header(const Header& header, std::vector<std::uint8_t>& out);
void write_node(const Node& node, std::vector<std::uint8_t>& out);
void write_packet(const Packet& packet, std::vector<std::uint8_t>& out);

}  // namespace manyscale::cpu::gem5
