// SPDX-License-Identifier: Apache-2.0
// gem5's elastic traces: their messages as columns and back, and as streams of nodes and back. Files are
// given and got piece by piece, unpacked.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <memory>
#include <optional>

#include "column_bytes.hpp"
#include "cpu/trace/block.hpp"
#include "cpu/trace/gem5_export.hpp"
#include "cpu/trace/gem5_import.hpp"
#include "cpu/trace/gem5_messages.hpp"

using namespace manyscale::cpu;

namespace {

std::span<const std::uint8_t> bytes_of(const nb::bytes& piece) {
  return {reinterpret_cast<const std::uint8_t*>(piece.c_str()), piece.size()};
}

nb::bytes python_bytes(const std::vector<std::uint8_t>& bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

nb::dict header_dict(const gem5::Header& header) {
  nb::dict out;
  out["object"] = nb::bytes(header.object.data(), header.object.size());
  out["version"] = header.has_version ? nb::cast(header.version) : nb::none();
  out["ticks_per_second"] = header.ticks_per_second;
  out["window"] = header.window;
  return out;
}

gem5::Header header_of(const nb::dict& given) {
  gem5::Header header;
  const auto object = nb::cast<nb::bytes>(given["object"]);
  header.object.assign(object.c_str(), object.size());
  header.has_version = !nb::object(given["version"]).is_none();
  if (header.has_version) header.version = nb::cast<std::uint32_t>(given["version"]);
  header.ticks_per_second = nb::cast<std::uint64_t>(given["ticks_per_second"]);
  header.window = nb::cast<std::uint32_t>(given["window"]);
  return header;
}

nb::dict node_columns(const std::vector<gem5::Node>& nodes) {
  nb::dict out;
  const auto add = [&]<class Value>(const char* name, Value&& value) {
    out[name] = column_bytes(nodes, value);
  };
  add("number", [](const auto& n) { return n.number; });
  add("type", [](const auto& n) { return static_cast<std::uint8_t>(n.type); });
  add("address", [](const auto& n) { return n.address; });
  add("size", [](const auto& n) { return n.size; });
  add("flags", [](const auto& n) { return n.flags; });
  add("delay", [](const auto& n) { return n.delay; });
  add("weight", [](const auto& n) { return n.weight; });
  add("pc", [](const auto& n) { return n.pc; });
  add("virtual_address", [](const auto& n) { return n.virtual_address; });
  add("address_space", [](const auto& n) { return n.address_space; });
  add("present", [](const auto& n) { return n.present; });
  add("orders", [](const auto& n) { return static_cast<std::uint32_t>(n.order.size()); });
  add("datas", [](const auto& n) { return static_cast<std::uint32_t>(n.data.size()); });
  std::vector<std::uint64_t> order, data;
  for (const gem5::Node& node : nodes) {
    order.insert(order.end(), node.order.begin(), node.order.end());
    data.insert(data.end(), node.data.begin(), node.data.end());
  }
  const auto same = [](std::uint64_t number) { return number; };
  out["order"] = column_bytes(order, same);
  out["data"] = column_bytes(data, same);
  return out;
}

std::vector<gem5::Node> nodes_of(const nb::dict& columns) {
  std::vector<gem5::Node> nodes(column_values<std::uint64_t>(columns, "number").size());
  const auto fill = [&]<class Value>(const char* name, Value gem5::Node::* member) {
    const auto values = column_values<Value>(columns, name, nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].*member = values[i];
  };
  fill("number", &gem5::Node::number);
  fill("address", &gem5::Node::address);
  fill("size", &gem5::Node::size);
  fill("flags", &gem5::Node::flags);
  fill("delay", &gem5::Node::delay);
  fill("weight", &gem5::Node::weight);
  fill("pc", &gem5::Node::pc);
  fill("virtual_address", &gem5::Node::virtual_address);
  fill("address_space", &gem5::Node::address_space);
  fill("present", &gem5::Node::present);
  const auto type = column_values<std::uint8_t>(columns, "type", nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (type[i] < 1 || type[i] > 3) throw std::invalid_argument("types of nodes are 1, 2 and 3");
    nodes[i].type = static_cast<gem5::NodeType>(type[i]);
  }
  const auto lists = [&](const char* counts, const char* name,
                         std::vector<std::uint64_t> gem5::Node::* member) {
    const auto count = column_values<std::uint32_t>(columns, counts, nodes.size());
    const auto values = column_values<std::uint64_t>(columns, name);
    std::size_t at = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (count[i] > values.size() - at) throw std::invalid_argument("a list of nodes is too short");
      (nodes[i].*member)
          .assign(values.begin() + static_cast<std::ptrdiff_t>(at),
                  values.begin() + static_cast<std::ptrdiff_t>(at + count[i]));
      at += count[i];
    }
  };
  lists("orders", "order", &gem5::Node::order);
  lists("datas", "data", &gem5::Node::data);
  return nodes;
}

nb::dict packet_columns(const std::vector<gem5::Packet>& packets) {
  nb::dict out;
  const auto add = [&]<class Value>(const char* name, Value&& value) {
    out[name] = column_bytes(packets, value);
  };
  add("tick", [](const auto& p) { return p.tick; });
  add("command", [](const auto& p) { return p.command; });
  add("address", [](const auto& p) { return p.address; });
  add("size", [](const auto& p) { return p.size; });
  add("flags", [](const auto& p) { return p.flags; });
  add("id", [](const auto& p) { return p.id; });
  add("pc", [](const auto& p) { return p.pc; });
  add("present", [](const auto& p) { return p.present; });
  return out;
}

std::vector<gem5::Packet> packets_of(const nb::dict& columns) {
  std::vector<gem5::Packet> packets(column_values<std::uint64_t>(columns, "tick").size());
  const auto fill = [&]<class Value>(const char* name, Value gem5::Packet::* member) {
    const auto values = column_values<Value>(columns, name, packets.size());
    for (std::size_t i = 0; i < packets.size(); ++i) packets[i].*member = values[i];
  };
  fill("tick", &gem5::Packet::tick);
  fill("command", &gem5::Packet::command);
  fill("address", &gem5::Packet::address);
  fill("size", &gem5::Packet::size);
  fill("flags", &gem5::Packet::flags);
  fill("id", &gem5::Packet::id);
  fill("pc", &gem5::Packet::pc);
  fill("present", &gem5::Packet::present);
  return packets;
}

// The messages of one file, after its header, as its pieces come.
template <class Message, gem5::Header (*ParseHeader)(const gem5::MessageSplitter::Message&),
          Message (*Parse)(const gem5::MessageSplitter::Message&)>
class Messages {
 public:
  template <class Take>
  void take(const nb::bytes& piece, Take&& each) {
    splitter_.give(bytes_of(piece));
    gem5::MessageSplitter::Message message{};
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
    if (!header_) throw gem5::FormatError(4, "it ends before its header");
  }
  const std::optional<gem5::Header>& header() const { return header_; }

 private:
  gem5::MessageSplitter splitter_;
  std::optional<gem5::Header> header_;
};

using NodeMessages = Messages<gem5::Node, gem5::parse_dependence_header, gem5::parse_node>;
using PacketMessages = Messages<gem5::Packet, gem5::parse_packet_header, gem5::parse_packet>;

// Columns of messages from the pieces of a file.
template <class Source, class Message, nb::dict (*Columns)(const std::vector<Message>&)>
class Reader {
 public:
  nb::dict take(const nb::bytes& piece) {
    std::vector<Message> found;
    messages_.take(piece, [&](Message&& message) { found.push_back(std::move(message)); });
    return Columns(found);
  }
  void finish() const { messages_.finish(); }
  nb::object header() const {
    return messages_.header() ? nb::object(header_dict(*messages_.header())) : nb::none();
  }

 private:
  Source messages_;
};

using NodeReader = Reader<NodeMessages, gem5::Node, node_columns>;
using PacketReader = Reader<PacketMessages, gem5::Packet, packet_columns>;

template <class BoundReader>
void bind_reader(nb::module_& module, const char* name) {
  nb::class_<BoundReader>(module, name)
      .def(nb::init<>())
      .def("take", &BoundReader::take, nb::arg("piece"))
      .def("finish", &BoundReader::finish)
      .def_prop_ro("header", &BoundReader::header);
}

// From the pieces of a data-dependency trace, and of a fetch trace if there is one, to blocks of a stream.
class StreamImport {
 public:
  StreamImport(std::uint16_t thread, std::uint64_t clock, std::uint64_t instructions, std::uint64_t packets)
      : spec_{.thread = thread, .clock = clock, .instructions = instructions, .packets = packets} {}

  // The blocks that became complete: bytes, nodes.
  nb::list take_nodes(const nb::bytes& piece) {
    node_messages_.take(piece, [this](gem5::Node&& node) { waiting_.push_back(std::move(node)); });
    return advance();
  }
  nb::list take_packets(const nb::bytes& piece) {
    packet_messages_.take(piece, [this](gem5::Packet&& packet) { given_.push_back(packet); });
    return advance();
  }
  // Nodes wait for requests of the fetch trace.
  bool wants_packets() const { return !waiting_.empty(); }
  nb::list finish() {
    node_messages_.finish();
    if (spec_.packets != 0) packet_messages_.finish();
    if (!waiting_.empty()) throw gem5::FormatError(0, "the fetch trace changed while it was read");
    begin();
    importer_->finish();
    close_block();
    return blocks();
  }
  nb::dict statistics() const {
    const gem5::ImportStatistics counted = importer_ ? importer_->statistics() : gem5::ImportStatistics{};
    nb::dict out;
    out["nodes"] = counted.nodes;
    out["instructions"] = counted.instructions;
    out["dropped_producers"] = counted.dropped_producers;
    out["clipped_delays"] = counted.clipped_delays;
    out["skipped_packets"] = counted.skipped_packets;
    return out;
  }

 private:
  void begin() {
    if (importer_) return;
    spec_.ticks_per_second = node_messages_.header()->ticks_per_second;
    importer_ = std::make_unique<gem5::Importer>(spec_, [this](const TraceNode& node) {
      nodes_.push_back(node);
      if (nodes_.size() == block_nodes) close_block();
    });
  }
  nb::list advance() {
    if (!node_messages_.header()) return blocks();
    begin();
    for (; !given_.empty(); given_.pop_front()) importer_->give(given_.front());
    for (; !waiting_.empty() && importer_->can_take(waiting_.front()); waiting_.pop_front()) {
      importer_->take(waiting_.front());
    }
    return blocks();
  }
  void close_block() {
    if (nodes_.empty()) return;
    std::uint64_t instructions = 0;
    for (const TraceNode& node : nodes_) instructions += node.is_sync() ? 0u : node.timing.instructions();
    complete_.push_back({encode_block(nodes_), nodes_.size(), instructions});
    nodes_.clear();
  }
  nb::list blocks() {
    nb::list out;
    for (const auto& block : complete_) {
      out.append(nb::make_tuple(python_bytes(block.bytes), block.nodes, block.instructions));
    }
    complete_.clear();
    return out;
  }

  struct Block {
    std::vector<std::uint8_t> bytes;
    std::size_t nodes;
    std::uint64_t instructions;
  };

  gem5::ImportSpec spec_;
  NodeMessages node_messages_;
  PacketMessages packet_messages_;
  std::deque<gem5::Node> waiting_;
  std::deque<gem5::Packet> given_;
  std::unique_ptr<gem5::Importer> importer_;
  std::vector<TraceNode> nodes_;
  std::vector<Block> complete_;
};

// From blocks of a stream to pieces of a data-dependency trace and of a fetch trace.
class StreamExport {
 public:
  StreamExport(std::uint64_t ticks_per_cycle, std::uint32_t window, std::uint32_t line,
               std::vector<std::uint64_t> latencies)
      : exporter_(
            {ticks_per_cycle, window, line, std::move(latencies)},
            [this](const gem5::Node& node) { gem5::write_node(node, nodes_); },
            [this](const gem5::Packet& packet) { gem5::write_packet(packet, packets_); }) {}

  nb::tuple take(const nb::bytes& block) {
    BlockReader reader(byte_vector(block));
    while (reader.left() > 0) exporter_.take(reader.next());
    nb::tuple out = nb::make_tuple(python_bytes(nodes_), python_bytes(packets_));
    nodes_.clear();
    packets_.clear();
    return out;
  }

 private:
  std::vector<std::uint8_t> nodes_, packets_;
  gem5::Exporter exporter_;
};

template <class Write>
nb::bytes begun_file(const nb::dict& header, Write&& write) {
  std::vector<std::uint8_t> out;
  gem5::write_magic(out);
  write(header_of(header), out);
  return python_bytes(out);
}

}  // namespace

void bind_gem5_trace(nb::module_& module) {
  nb::exception<gem5::FormatError>(module, "BadGem5Trace", PyExc_ValueError);
  bind_reader<NodeReader>(module, "Gem5NodeReader");
  bind_reader<PacketReader>(module, "Gem5PacketReader");
  module.def("gem5_begin_nodes",
             [](const nb::dict& header) { return begun_file(header, gem5::write_dependence_header); });
  module.def("gem5_begin_packets",
             [](const nb::dict& header) { return begun_file(header, gem5::write_packet_header); });
  module.def("gem5_write_nodes", [](const nb::dict& columns) {
    std::vector<std::uint8_t> out;
    for (const gem5::Node& node : nodes_of(columns)) gem5::write_node(node, out);
    return python_bytes(out);
  });
  module.def("gem5_write_packets", [](const nb::dict& columns) {
    std::vector<std::uint8_t> out;
    for (const gem5::Packet& packet : packets_of(columns)) gem5::write_packet(packet, out);
    return python_bytes(out);
  });

  nb::class_<StreamImport>(module, "Gem5Import")
      .def(nb::init<std::uint16_t, std::uint64_t, std::uint64_t, std::uint64_t>(), nb::arg("thread"),
           nb::arg("clock"), nb::arg("instructions"), nb::arg("packets"))
      .def("take_nodes", &StreamImport::take_nodes, nb::arg("piece"))
      .def("take_packets", &StreamImport::take_packets, nb::arg("piece"))
      .def_prop_ro("wants_packets", &StreamImport::wants_packets)
      .def("finish", &StreamImport::finish)
      .def("statistics", &StreamImport::statistics);
  nb::class_<StreamExport>(module, "Gem5Export")
      .def(nb::init<std::uint64_t, std::uint32_t, std::uint32_t, std::vector<std::uint64_t>>(),
           nb::arg("ticks_per_cycle"), nb::arg("window"), nb::arg("line"), nb::arg("latencies"))
      .def("take", &StreamExport::take, nb::arg("block"));
}
