// SPDX-License-Identifier: Apache-2.0
// gem5's elastic traces: their messages as columns and back, and as streams of nodes and back. Files are
// given and got piece by piece, unpacked.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <utility>

#include "column_bytes.hpp"
#include "cpu/trace/gem5_messages.hpp"
#include "cpu/trace/gem5_stream.hpp"

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

// Columns of messages from the pieces of a file.
template <class Source, class Message, nb::dict (*Columns)(const std::vector<Message>&)>
class Reader {
 public:
  nb::dict take(const nb::bytes& piece) {
    std::vector<Message> found;
    messages_.take(bytes_of(piece), [&](Message&& message) { found.push_back(std::move(message)); });
    return Columns(found);
  }
  void finish() const { messages_.finish(); }
  nb::object header() const {
    return messages_.header() ? nb::object(header_dict(*messages_.header())) : nb::none();
  }

 private:
  Source messages_;
};

using NodeReader = Reader<gem5::NodeMessages, gem5::Node, node_columns>;
using PacketReader = Reader<gem5::PacketMessages, gem5::Packet, packet_columns>;

template <class BoundReader>
void bind_reader(nb::module_& module, const char* name) {
  nb::class_<BoundReader>(module, name)
      .def(nb::init<>())
      .def("take", &BoundReader::take, nb::arg("piece"))
      .def("finish", &BoundReader::finish)
      .def_prop_ro("header", &BoundReader::header);
}

// The blocks that became complete: bytes, nodes, instructions.
nb::list block_list(gem5::StreamImport& import) {
  nb::list out;
  for (const auto& block : import.take_blocks()) {
    out.append(nb::make_tuple(python_bytes(block.bytes), block.nodes, block.instructions));
  }
  return out;
}

nb::dict import_statistics(const gem5::StreamImport& import) {
  const gem5::ImportStatistics counted = import.statistics();
  nb::dict out;
  out["nodes"] = counted.nodes;
  out["instructions"] = counted.instructions;
  out["dropped_producers"] = counted.dropped_producers;
  out["clipped_delays"] = counted.clipped_delays;
  out["skipped_packets"] = counted.skipped_packets;
  return out;
}

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

  nb::class_<gem5::StreamImport>(module, "Gem5Import")
      .def(
          "__init__",
          [](gem5::StreamImport* self, std::uint16_t thread, std::uint64_t clock, std::uint64_t instructions,
             std::uint64_t packets) {
            new (self) gem5::StreamImport(
                {.thread = thread, .clock = clock, .instructions = instructions, .packets = packets});
          },
          nb::arg("thread"), nb::arg("clock"), nb::arg("instructions"), nb::arg("packets"))
      .def(
          "take_nodes",
          [](gem5::StreamImport& self, const nb::bytes& piece) {
            self.take_nodes(bytes_of(piece));
            return block_list(self);
          },
          nb::arg("piece"))
      .def(
          "take_packets",
          [](gem5::StreamImport& self, const nb::bytes& piece) {
            self.take_packets(bytes_of(piece));
            return block_list(self);
          },
          nb::arg("piece"))
      .def_prop_ro("wants_packets", &gem5::StreamImport::wants_packets)
      .def("finish",
           [](gem5::StreamImport& self) {
             self.finish();
             return block_list(self);
           })
      .def("statistics", &import_statistics);
  nb::class_<gem5::StreamExport>(module, "Gem5Export")
      .def(
          "__init__",
          [](gem5::StreamExport* self, std::uint64_t ticks_per_cycle, std::uint32_t window,
             std::uint32_t line, std::vector<std::uint64_t> latencies) {
            new (self) gem5::StreamExport({ticks_per_cycle, window, line, std::move(latencies)});
          },
          nb::arg("ticks_per_cycle"), nb::arg("window"), nb::arg("line"), nb::arg("latencies"))
      .def(
          "take",
          [](gem5::StreamExport& self, const nb::bytes& block) {
            const auto pieces = self.take(byte_vector(block));
            return nb::make_tuple(python_bytes(pieces.nodes), python_bytes(pieces.packets));
          },
          nb::arg("block"));
}
