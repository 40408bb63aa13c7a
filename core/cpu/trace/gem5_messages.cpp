// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/gem5_messages.hpp"

#include <algorithm>
#include <limits>

namespace manyscale::cpu::gem5 {

namespace {

constexpr std::size_t magic_bytes = 4;
constexpr std::uint8_t magic[magic_bytes] = {'g', 'e', 'm', '5'};
constexpr int longest_number = 10;  // bytes

enum class Wire : std::uint8_t { number = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

// A number of seven bits a byte. False if the bytes end within it.
bool read_number(std::span<const std::uint8_t> bytes, std::size_t& at, std::uint64_t offset,
                 std::uint64_t& value) {
  value = 0;
  for (int i = 0; i < longest_number; ++i) {
    if (at >= bytes.size()) return false;
    const std::uint8_t byte = bytes[at++];
    if (i == longest_number - 1 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) return true;
  }
  throw FormatError(offset + at - 1, "a number is longer than 64 bits");
}

// A field of a message as it lies there.
struct FieldValue {
  std::uint32_t field = 0;
  Wire wire = Wire::number;
  std::uint64_t number = 0;
  std::span<const std::uint8_t> bytes{};
};

class FieldReader {
 public:
  explicit FieldReader(const MessageSplitter::Message& message) : message_(message) {}

  std::uint64_t offset() const { return message_.offset + at_; }

  bool next(FieldValue& value) {
    if (at_ == message_.bytes.size()) return false;
    const std::uint64_t began = offset();
    const std::uint64_t key = number();
    if (key >> 3 == 0 || key >> 32 != 0) throw FormatError(began, "there is no field 0");
    value.field = static_cast<std::uint32_t>(key >> 3);
    value.wire = static_cast<Wire>(key & 7);
    switch (value.wire) {
      case Wire::number:
        value.number = number();
        break;
      case Wire::eight_bytes:
        skip(8);
        break;
      case Wire::four_bytes:
        skip(4);
        break;
      case Wire::bytes: {
        const std::uint64_t length = number();
        if (length > message_.bytes.size() - at_) cut_off();
        value.bytes = message_.bytes.subspan(at_, length);
        at_ += length;
        break;
      }
      default:
        throw FormatError(began, "a field is of a type that there is not");
    }
    return true;
  }

 private:
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (!read_number(message_.bytes, at_, message_.offset, value)) cut_off();
    return value;
  }
  void skip(std::size_t count) {
    if (count > message_.bytes.size() - at_) cut_off();
    at_ += count;
  }
  [[noreturn]] void cut_off() const { throw FormatError(offset(), "a field is longer than its message"); }

  const MessageSplitter::Message& message_;
  std::size_t at_ = 0;
};

// Reads the fields of a message that are numbers, those that may repeat among them, and checks which are
// there.
class Fields {
 public:
  explicit Fields(const MessageSplitter::Message& message) : message_(message), reader_(message) {}

  // Calls take(field, number) for each number, and text(field, bytes) for what is none; a list of numbers in
  // one field is taken apart.
  template <class Take, class Text>
  void read(std::uint32_t repeated, Take&& take, Text&& text) {
    FieldValue value;
    while (reader_.next(value)) {
      if (value.field >= 32) continue;
      const bool is_repeated = (repeated >> value.field & 1) != 0;
      if (value.wire == Wire::number) {
        take(value.field, value.number);
      } else if (value.wire == Wire::bytes && is_repeated) {
        const std::uint64_t offset =
            message_.offset + static_cast<std::uint64_t>(value.bytes.data() - message_.bytes.data());
        for (std::size_t at = 0; at < value.bytes.size();) {
          std::uint64_t number = 0;
          if (!read_number(value.bytes, at, offset, number)) {
            throw FormatError(offset + at, "a number is longer than its list");
          }
          take(value.field, number);
        }
      } else if (value.wire == Wire::bytes) {
        text(value.field, value.bytes);
      } else {
        continue;
      }
      found_ |= 1u << value.field;
    }
  }
  template <class Take>
  void read(std::uint32_t repeated, Take&& take) {
    read(repeated, take, [](std::uint32_t, std::span<const std::uint8_t>) {});
  }

  std::uint16_t found() const { return static_cast<std::uint16_t>(found_); }
  void require(std::initializer_list<std::uint32_t> fields, const char* what) const {
    for (const std::uint32_t field : fields) {
      if ((found_ >> field & 1) == 0) {
        throw FormatError(message_.offset,
                          std::string("a ") + what + " lacks its field " + std::to_string(field));
      }
    }
  }

 private:
  const MessageSplitter::Message& message_;
  FieldReader reader_;
  std::uint32_t found_ = 0;
};

Header parse_header(const MessageSplitter::Message& message, bool with_window) {
  Header header;
  Fields fields(message);
  fields.read(
      0,
      [&](std::uint32_t field, std::uint64_t number) {
        if (field == 2) header.version = static_cast<std::uint32_t>(number), header.has_version = true;
        if (field == 3) header.ticks_per_second = number;
        if (field == 4 && with_window) header.window = static_cast<std::uint32_t>(number);
      },
      [&](std::uint32_t field, std::span<const std::uint8_t> bytes) {
        if (field == 1) header.object.assign(bytes.begin(), bytes.end());
      });
  fields.require({1, 3}, "header");
  if (with_window) fields.require({4}, "header of a data-dependency trace");
  if (header.ticks_per_second == 0)
    throw FormatError(message.offset, "the header says that time has no ticks");
  return header;
}

// Puts a message behind its length at the end of a file.
class MessageWriter {
 public:
  explicit MessageWriter(std::vector<std::uint8_t>& out) : out_(out) {}
  ~MessageWriter() {
    put(out_, bytes_.size());
    out_.insert(out_.end(), bytes_.begin(), bytes_.end());
  }
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;

  void number(unsigned field, std::uint64_t value) {
    put(bytes_, field << 3 | static_cast<unsigned>(Wire::number));
    put(bytes_, value);
  }
  void numbers(unsigned field, const std::vector<std::uint64_t>& values) {
    for (const std::uint64_t value : values) number(field, value);
  }
  void text(unsigned field, const std::string& value) {
    put(bytes_, field << 3 | static_cast<unsigned>(Wire::bytes));
    put(bytes_, value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

 private:
  static void put(std::vector<std::uint8_t>& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
    out.push_back(static_cast<std::uint8_t>(value));
  }

  std::vector<std::uint8_t>& out_;
  std::vector<std::uint8_t> bytes_;
};

void write_header(const Header& header, MessageWriter& message) {
  message.text(1, header.object);
  if (header.has_version) message.number(2, header.version);
  message.number(3, header.ticks_per_second);
}

}  // namespace

void MessageSplitter::give(std::span<const std::uint8_t> piece) {
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(at_));
  offset_ += at_;
  at_ = 0;
  kept_.insert(kept_.end(), piece.begin(), piece.end());
}

bool MessageSplitter::next(Message& message) {
  if (!began_) {
    const std::size_t there = std::min(kept_.size(), magic_bytes);
    if (!std::equal(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(there), magic)) {
      throw FormatError(0, "it does not begin with \"gem5\"");
    }
    if (there < magic_bytes) return false;
    began_ = true;
    at_ = magic_bytes;
  }
  std::size_t at = at_;
  std::uint64_t length = 0;
  if (!read_number(kept_, at, offset_, length)) return false;
  if (length > most_bytes) {
    throw FormatError(offset_ + at_, "a message is said to have " + std::to_string(length) + " bytes");
  }
  if (length > kept_.size() - at) return false;
  message = {std::span<const std::uint8_t>(kept_).subspan(at, length), offset_ + at};
  at_ = at + length;
  return true;
}

void MessageSplitter::finish() const {
  if (!began_) throw FormatError(offset_ + kept_.size(), "it ends before the word \"gem5\" does");
  if (at_ < kept_.size()) throw FormatError(offset_ + kept_.size(), "it ends within a message");
}

Header parse_dependence_header(const MessageSplitter::Message& message) {
  return parse_header(message, true);
}

Header parse_packet_header(const MessageSplitter::Message& message) {
  return parse_header(message, false);
}

Node parse_node(const MessageSplitter::Message& message) {
  Node node;
  std::uint64_t type = 0;
  Fields fields(message);
  fields.read(1u << 6 | 1u << 8, [&](std::uint32_t field, std::uint64_t number) {
    switch (field) {
      case 1:
        node.number = number;
        break;
      case 2:
        type = number;
        break;
      case Node::address_field:
        node.address = number;
        break;
      case Node::size_field:
        node.size = static_cast<std::uint32_t>(number);
        break;
      case Node::flags_field:
        node.flags = static_cast<std::uint32_t>(number);
        break;
      case 6:
        node.order.push_back(number);
        break;
      case 7:
        node.delay = number;
        break;
      case 8:
        node.data.push_back(number);
        break;
      case Node::weight_field:
        node.weight = static_cast<std::uint32_t>(number);
        break;
      case Node::pc_field:
        node.pc = number;
        break;
      case Node::virtual_address_field:
        node.virtual_address = number;
        break;
      case Node::address_space_field:
        node.address_space = static_cast<std::uint32_t>(number);
        break;
      default:
        break;
    }
  });
  fields.require({1, 2, 7}, "node");
  if (type < 1 || type > 3) {
    throw FormatError(message.offset, "a node is of type " + std::to_string(type) +
                                          "; there are 1 (load), 2 (store) and 3 (compute)");
  }
  node.type = static_cast<NodeType>(type);
  constexpr std::uint16_t optional = field_bit(Node::address_field) | field_bit(Node::size_field) |
                                     field_bit(Node::flags_field) | field_bit(Node::weight_field) |
                                     field_bit(Node::pc_field) | field_bit(Node::virtual_address_field) |
                                     field_bit(Node::address_space_field);
  node.present = fields.found() & optional;
  if (node.type != NodeType::compute)
    fields.require({Node::address_field, Node::size_field}, "load or store");
  return node;
}

Packet parse_packet(const MessageSplitter::Message& message) {
  Packet packet;
  Fields fields(message);
  fields.read(0, [&](std::uint32_t field, std::uint64_t number) {
    switch (field) {
      case 1:
        packet.tick = number;
        break;
      case 2:
        packet.command = static_cast<std::uint32_t>(number);
        break;
      case 3:
        packet.address = number;
        break;
      case 4:
        packet.size = static_cast<std::uint32_t>(number);
        break;
      case Packet::flags_field:
        packet.flags = static_cast<std::uint32_t>(number);
        break;
      case Packet::id_field:
        packet.id = number;
        break;
      case Packet::pc_field:
        packet.pc = number;
        break;
      default:
        break;
    }
  });
  fields.require({1, 2, 3, 4}, "packet");
  constexpr std::uint16_t optional =
      field_bit(Packet::flags_field) | field_bit(Packet::id_field) | field_bit(Packet::pc_field);
  packet.present = fields.found() & optional;
  return packet;
}

void write_magic(std::vector<std::uint8_t>& out) {
  out.insert(out.end(), std::begin(magic), std::end(magic));
}

void write_dependence_header(const Header& header, std::vector<std::uint8_t>& out) {
  MessageWriter message(out);
  write_header(header, message);
  message.number(4, header.window);
}

void write_packet_header(const Header& header, std::vector<std::uint8_t>& out) {
  MessageWriter message(out);
  write_header(header, message);
}

void write_node(const Node& node, std::vector<std::uint8_t>& out) {
  const auto has = [&node](unsigned field) { return (node.present & field_bit(field)) != 0; };
  MessageWriter message(out);
  message.number(1, node.number);
  message.number(2, static_cast<std::uint64_t>(node.type));
  if (has(Node::address_field)) message.number(Node::address_field, node.address);
  if (has(Node::size_field)) message.number(Node::size_field, node.size);
  if (has(Node::flags_field)) message.number(Node::flags_field, node.flags);
  message.numbers(6, node.order);
  message.number(7, node.delay);
  message.numbers(8, node.data);
  if (has(Node::weight_field)) message.number(Node::weight_field, node.weight);
  if (has(Node::pc_field)) message.number(Node::pc_field, node.pc);
  if (has(Node::virtual_address_field)) message.number(Node::virtual_address_field, node.virtual_address);
  if (has(Node::address_space_field)) message.number(Node::address_space_field, node.address_space);
}

void write_packet(const Packet& packet, std::vector<std::uint8_t>& out) {
  const auto has = [&packet](unsigned field) { return (packet.present & field_bit(field)) != 0; };
  MessageWriter message(out);
  message.number(1, packet.tick);
  message.number(2, packet.command);
  message.number(3, packet.address);
  message.number(4, packet.size);
  if (has(Packet::flags_field)) message.number(Packet::flags_field, packet.flags);
  if (has(Packet::id_field)) message.number(Packet::id_field, packet.id);
  if (has(Packet::pc_field)) message.number(Packet::pc_field, packet.pc);
}

}  // namespace manyscale::cpu::gem5
