// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/block.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "cpu/trace/packed_node.hpp"

namespace manyscale::cpu {

using block::Shape;
using block::Template;

namespace {

constexpr std::uint8_t version = 1;

// Bits of a node's control byte.
constexpr std::uint8_t new_template = 1;  // its number follows
constexpr std::uint8_t new_address = 2;   // its difference from the template's last follows
constexpr std::uint8_t shape_shift = 2;   // how long ago the template had this shape, or:
constexpr std::uint8_t new_shape = Template::shapes_kept;
constexpr std::uint8_t with_hits = 64;  // of a shape's first byte: some of its delays have hits in them
constexpr std::uint8_t largest_control = new_shape << shape_shift | new_address | new_template;

// ALU instructions touch no address and go nowhere.
bool has_address(InstructionClass kind) {
  return kind >= InstructionClass::load;
}

// Small numbers for small differences of either sign.
std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}
std::uint64_t from_zigzag(std::uint64_t number) {
  return number >> 1 ^ ((number & 1) != 0 ? ~std::uint64_t{0} : 0);
}

// The shape of this age becomes the last one.
void use_shape(Template& used, std::size_t age) {
  std::rotate(used.shapes.begin(), used.shapes.begin() + static_cast<long>(age),
              used.shapes.begin() + static_cast<long>(age) + 1);
}
void add_shape(Template& used, const Shape& shape) {
  std::copy_backward(used.shapes.begin(), used.shapes.end() - 1, used.shapes.end());
  used.shapes[0] = shape;
}

// The template is at an address again. A stride counts when it was seen twice, so that a loop that begins
// again goes on with the stride it had.
void go_to(Template& used, std::uint64_t address) {
  const std::uint64_t difference = address - used.address;
  used.address = address;
  if (difference == used.stride) return;
  if (difference == used.last_difference) used.stride = difference;
  used.last_difference = difference;
}

class Writer {
 public:
  std::vector<std::uint8_t> bytes;

  void byte(std::uint8_t value) { bytes.push_back(value); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
  void shape(const Shape& shape) {
    std::uint8_t present = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (shape.producers[i] != 0) present |= static_cast<std::uint8_t>(1 << i);
      if (shape.delays[i] != 0) present |= static_cast<std::uint8_t>(8 << i);
    }
    const bool has_hits = shape.hits != L1Hits{};
    byte(present | (has_hits ? with_hits : 0));
    byte(shape.weight);
    for (const std::uint16_t producer : shape.producers) {
      if (producer != 0) number(producer);
    }
    for (const std::uint8_t delay : shape.delays) {
      if (delay != 0) byte(delay);
    }
    if (!has_hits) return;
    for (const std::uint8_t hits : shape.hits) byte(hits);
  }
};

// What makes two nodes of one template.
using Key = std::tuple<std::uint64_t, std::uint64_t>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return (std::get<0>(key) * 0x9e3779b97f4a7c15u ^ std::get<1>(key)) * 0xd6e8feb86659fd93u >> 20;
  }
};
Key key_of(const TraceNode& node, const PackedNode& packed) {
  return {node.pc, std::uint64_t{node.thread} << 32 | std::uint64_t{packed.format} << 24 |
                       std::uint64_t{packed.size} << 16 | std::uint64_t{packed.flags} << 8 |
                       static_cast<std::uint64_t>(node.kind)};
}

class Encoder {
 public:
  std::vector<std::uint8_t> encode(std::span<const TraceNode> nodes, std::span<const L1Hits> hits) {
    out_.byte(version);
    out_.number(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) add(nodes[i], hits.empty() ? L1Hits{} : hits[i]);
    return std::move(out_.bytes);
  }

 private:
  void add(const TraceNode& node, const L1Hits& hits) {
    const PackedNode packed = PackedNode::pack(node);
    const auto [entry, added] =
        numbers_.try_emplace(key_of(node, packed), static_cast<std::uint32_t>(templates_.size()));
    const std::uint32_t number = entry->second;
    if (added) {
      templates_.emplace_back();
      // New templates begin at the address that the template before them was at.
      if (current_ != none) templates_[number].address = templates_[current_].address;
    }
    Template& used = templates_[number];
    const bool guessed = !added && current_ != none && templates_[current_].next == number;
    const Shape shape{PackedNode::pack_producers(node), node.timing.delays, hits, node.timing.weight};
    const auto known = std::find(used.shapes.begin(), used.shapes.end(), shape);
    const auto age = static_cast<std::size_t>(known - used.shapes.begin());
    const bool follows = !has_address(node.kind) || node.address == used.address + used.stride;
    out_.byte(static_cast<std::uint8_t>((guessed ? 0 : new_template) | (follows ? 0 : new_address) |
                                        static_cast<unsigned>(age) << shape_shift));
    if (!guessed) out_.number(number);
    if (added) add_template(node, packed);
    if (age == new_shape) {
      out_.shape(shape);
      add_shape(used, shape);
    } else if (age != 0) {
      use_shape(used, age);
    }
    if (has_address(node.kind)) {
      if (!follows) out_.number(zigzag(node.address - used.address));
      go_to(used, node.address);
    }
    if (current_ != none) templates_[current_].next = number;
    current_ = number;
  }

  void add_template(const TraceNode& node, const PackedNode& packed) {
    out_.number(zigzag(node.pc - last_pc_));
    out_.byte(static_cast<std::uint8_t>(node.kind));
    out_.byte(packed.flags);
    out_.byte(packed.size);
    out_.byte(packed.format);
    out_.number(node.thread);
    last_pc_ = node.pc;
  }

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  Writer out_;
  std::unordered_map<Key, std::uint32_t, KeyHash> numbers_;
  std::vector<Template> templates_;
  std::uint32_t current_ = none;
  std::uint64_t last_pc_ = 0;
};

}  // namespace

std::vector<std::uint8_t> encode_block(std::span<const TraceNode> nodes, std::span<const L1Hits> hits) {
  if (nodes.size() > block_nodes) throw std::invalid_argument("a block has at most 16384 nodes");
  return Encoder().encode(nodes, hits);
}

BlockError::BlockError(std::size_t offset, const std::string& what)
    : std::runtime_error("byte " + std::to_string(offset) + " of the block: " + what), offset_(offset) {}

BlockReader::BlockReader(std::vector<std::uint8_t> bytes, int slower_hits)
    : bytes_(std::move(bytes)), slower_hits_(slower_hits) {
  if (const std::uint8_t found = byte(); found != version) {
    fail("version " + std::to_string(found) + " is not known, only " + std::to_string(version));
  }
  nodes_ = number_below(block_nodes + 1, "the number of nodes");
  // Every node has a byte of its own, so that a few bytes never make many nodes.
  if (nodes_ > bytes_.size() - at_) fail("ends before its " + std::to_string(nodes_) + " nodes");
  if (nodes_ == 0 && at_ != bytes_.size()) fail("goes on after its last node");
}

void BlockReader::fail(const std::string& what) const {
  throw BlockError(at_, what);
}

std::uint8_t BlockReader::byte() {
  if (at_ == bytes_.size()) fail("ends within a node");
  return bytes_[at_++];
}

std::uint64_t BlockReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    value |= std::uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) return value;
  }
  fail("a number is longer than 64 bits");
}

std::uint64_t BlockReader::number_below(std::uint64_t limit, const char* what) {
  const std::uint64_t value = number();
  if (value >= limit) {
    fail(std::string(what) + " is " + std::to_string(value) + ", but must be less than " +
         std::to_string(limit));
  }
  return value;
}

std::uint32_t BlockReader::read_template() {
  const auto number = static_cast<std::uint32_t>(number_below(templates_.size() + 1, "the template"));
  if (number < templates_.size()) return number;
  Template& added = templates_.emplace_back();
  TraceNode& fixed = added.fixed;
  fixed.pc = last_pc_ += from_zigzag(this->number());
  const std::uint8_t kind = byte();
  if (kind >= instruction_classes) fail("there is no kind " + std::to_string(kind));
  fixed.kind = static_cast<InstructionClass>(kind);
  PackedNode packed;
  packed.flags = byte();
  packed.size = byte();
  packed.format = byte();
  fixed.thread = static_cast<std::uint16_t>(number_below(1 << 16, "the thread"));
  if (fixed.is_sync() && packed.size >= sync_kinds) {
    fail("there is no kind " + std::to_string(packed.size) + " of synchronisation");
  }
  packed.unpack(fixed);
  added.address = number == 0 ? 0 : templates_[current_].address;
  return number;
}

block::Shape BlockReader::read_shape() {
  Shape shape;
  const std::uint8_t present = byte();
  if (present >= 2 * with_hits) fail("a shape has more than three producers");
  shape.weight = byte();
  for (std::size_t i = 0; i < 3; ++i) {
    if ((present >> i & 1) == 0) continue;
    shape.producers[i] = static_cast<std::uint16_t>(number_below(1 << 16, "the producer"));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if ((present >> (3 + i) & 1) != 0) shape.delays[i] = byte();
  }
  if ((present & with_hits) == 0) return shape;
  for (std::size_t i = 0; i < 3; ++i) {
    shape.hits[i] = byte();
    const int delay = shape.delays[i] + slower_hits_ * shape.hits[i];
    shape.delays[i] = static_cast<std::uint8_t>(std::clamp(delay, 0, 255));
  }
  return shape;
}

TraceNode BlockReader::next() {
  const std::uint8_t control = byte();
  if (control > largest_control) fail("a node begins with " + std::to_string(control));
  std::uint32_t number = 0;
  if ((control & new_template) != 0) {
    number = read_template();
  } else if (templates_.empty()) {
    fail("the first node has no template");
  } else {
    number = templates_[current_].next;
  }
  if (read_ > 0) templates_[current_].next = number;
  current_ = number;
  Template& used = templates_[number];
  if (const auto age = static_cast<std::size_t>(control >> shape_shift); age == new_shape) {
    add_shape(used, read_shape());
  } else if (age != 0) {
    use_shape(used, age);
  }
  TraceNode node = used.fixed;
  PackedNode::unpack_producers(used.shapes[0].producers, node);
  node.timing.delays = used.shapes[0].delays;
  node.timing.weight = used.shapes[0].weight;
  if ((control & new_address) != 0) {
    if (!has_address(node.kind)) fail("an ALU instruction has an address");
    go_to(used, used.address + from_zigzag(this->number()));
    node.address = used.address;
  } else if (has_address(node.kind)) {
    used.address += used.stride;
    node.address = used.address;
  }
  if (++read_ == nodes_ && at_ != bytes_.size()) fail("goes on after its last node");
  return node;
}

std::vector<TraceNode> decode_block(std::vector<std::uint8_t> bytes, int slower_hits) {
  BlockReader reader(std::move(bytes), slower_hits);
  std::vector<TraceNode> nodes;
  nodes.reserve(reader.nodes());
  while (reader.left() > 0) nodes.push_back(reader.next());
  return nodes;
}

}  // namespace manyscale::cpu
