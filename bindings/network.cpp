// SPDX-License-Identifier: Apache-2.0
// MPI jobs on a simulated network: descriptions and programs in as plain values and arrays, results out as
// arrays.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>

#include "engine/perfetto.hpp"
#include "module.hpp"
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/written_out.hpp"
#include "mpi/job.hpp"
#include "network/topology_model.hpp"
#include "network_values.hpp"
#include "values.hpp"

using namespace manyscale;
using mpi::Job;

namespace {

// A numpy array of its own memory.
template <class T>
nb::object array_of(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned,
                          [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// One value of each element, as an array.
template <class T, class Range, class Get>
nb::object column_of(const Range& range, Get&& get) {
  std::vector<T> values;
  values.reserve(std::size(range));
  for (const auto& element : range) values.push_back(static_cast<T>(std::invoke(get, element)));
  return array_of(std::move(values));
}

std::int32_t narrow(std::int64_t value) {
  if (!std::in_range<std::int32_t>(value))
    throw std::invalid_argument("a number of the program is too large");
  return static_cast<std::int32_t>(value);
}

void read_operations(mpi::Program& program, const nb::handle& rows) {
  const auto array = nb::cast<In<std::int32_t, nb::ndim<2>>>(rows);
  if (array.shape(1) != mpi::operation_fields.size())
    throw std::invalid_argument("an operation has " + std::to_string(mpi::operation_fields.size()) +
                                " fields");
  program.operations.reserve(array.shape(0));
  for (std::size_t i = 0; i < array.shape(0); ++i) {
    const std::int32_t* field = array.data() + i * mpi::operation_fields.size();
    if (field[0] < 0 || static_cast<std::size_t>(field[0]) >= mpi::kind_count || field[1] < 0 ||
        field[1] > 255 || field[2] < 0 || field[2] > 0xffff) {
      throw std::invalid_argument("operation " + std::to_string(i) +
                                  ": kind, algorithm or communicator is out of range");
    }
    program.operations.push_back({static_cast<mpi::OperationKind>(field[0]),
                                  static_cast<std::uint8_t>(field[1]), static_cast<std::uint16_t>(field[2]),
                                  field[3], field[4], field[5], field[6], field[7], field[8], field[9],
                                  field[10], field[11], field[12]});
  }
}

void read_columns(mpi::Program& program, const nb::handle& rows) {
  const auto array = nb::cast<In<std::int64_t, nb::ndim<2>>>(rows);
  if (array.shape(1) != 9) throw std::invalid_argument("a column has 9 fields");
  for (std::size_t i = 0; i < array.shape(0); ++i) {
    const std::int64_t* field = array.data() + i * 9;
    program.columns.push_back({field[0], field[1], field[2], field[3], field[4], field[5], field[6],
                               narrow(field[7]), narrow(field[8])});
  }
}

mpi::Communicator read_communicator(const nb::dict& dict, std::uint32_t ranks) {
  const auto kind = nb::cast<std::string>(dict["kind"]);
  if (kind == "world") return mpi::Communicator::world(ranks);
  if (kind == "strided") {
    return mpi::Communicator::strided(ranks, nb::cast<std::uint32_t>(dict["stride"]),
                                      nb::cast<std::uint32_t>(dict["count"]));
  }
  if (kind != "groups") throw std::invalid_argument("a communicator is 'world', 'strided' or 'groups'");
  const auto group = nb::cast<In<std::int32_t>>(dict["group"]);
  const auto key = nb::cast<In<std::int32_t>>(dict["key"]);
  if (group.size() != ranks) throw std::invalid_argument("a communicator needs a group for each rank");
  return mpi::Communicator::split({group.data(), group.size()}, {key.data(), key.size()});
}

mpi::ComputePattern read_pattern(const nb::dict& dict) {
  mpi::ComputePattern pattern;
  for (const std::int64_t cluster : vector_of<std::int64_t>(dict["sequence"]))
    pattern.sequence.push_back(static_cast<std::uint32_t>(narrow(cluster)));
  for (const nb::handle entry : nb::cast<nb::list>(dict["clusters"])) {
    const auto cluster = nb::cast<nb::dict>(entry);
    mpi::Distribution distribution{vector_of<std::int64_t>(cluster["low"]),
                                   vector_of<std::int64_t>(cluster["high"]),
                                   vector_of<double>(cluster["weight"])};
    double sum = 0;
    for (double& weight : distribution.cumulative) weight = sum += weight;
    pattern.clusters.push_back(std::move(distribution));
  }
  return pattern;
}

std::vector<mpi::Dependencies::Pair> read_pairs(const nb::handle& rows) {
  const auto array = nb::cast<In<std::uint32_t, nb::shape<-1, 2>>>(rows);
  std::vector<mpi::Dependencies::Pair> pairs;
  for (std::size_t i = 0; i < array.shape(0); ++i)
    pairs.push_back({array.data()[2 * i], array.data()[2 * i + 1]});
  return pairs;
}

mpi::Program read_program(const nb::dict& dict) {
  mpi::Program program;
  program.ranks = nb::cast<std::uint32_t>(dict["ranks"]);
  read_operations(program, dict["operations"]);
  read_columns(program, dict["columns"]);
  for (const nb::handle array : nb::cast<nb::list>(dict["arrays"])) {
    if (nb::isinstance<In<std::int32_t>>(array))
      program.arrays.emplace_back(vector_of<std::int32_t>(array));
    else
      program.arrays.emplace_back(vector_of<std::int64_t>(array));
  }
  for (const nb::handle communicator : nb::cast<nb::list>(dict["communicators"]))
    program.communicators.push_back(read_communicator(nb::cast<nb::dict>(communicator), program.ranks));
  for (const nb::handle pattern : nb::cast<nb::list>(dict["patterns"]))
    program.patterns.push_back(read_pattern(nb::cast<nb::dict>(pattern)));
  program.entry = nb::cast<std::int32_t>(dict["entry"]);
  if (dict.contains("dependencies")) {
    const auto dependencies = nb::cast<nb::dict>(dict["dependencies"]);
    program.dependencies.ended = read_pairs(dependencies["ended"]);
    program.dependencies.begun = read_pairs(dependencies["begun"]);
    program.dependencies.unordered = true;
  }
  return program;
}

// How many waits of each rank are kept for the critical path, so that all together take a bounded memory.
std::uint32_t waits_kept(std::uint32_t ranks) {
  constexpr std::size_t budget = 32u << 20;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(budget / sizeof(mpi::Release) / std::max(ranks, 1u), 8, 8192));
}

void make_job(Job* self, const nb::dict& description, const nb::dict& program_dict, std::uint64_t seed,
              const std::optional<In<std::int64_t>>& timeline, bool critical_path, bool check) {
  mpi::Program program = read_program(program_dict);
  mpi::Recording recording;
  recording.values = check;
  recording.waits_per_rank = critical_path ? waits_kept(program.ranks) : 0;
  const std::size_t traced = timeline ? timeline->size() : 0;
  if (traced > 0) recording.timeline.resize(program.ranks);
  for (std::size_t i = 0; i < traced; ++i) {
    const std::int64_t rank = timeline->data()[i];
    if (rank < 0 || rank >= program.ranks)
      throw std::invalid_argument("the timeline names a rank that is not there");
    recording.timeline[static_cast<std::size_t>(rank)] = true;
  }
  std::vector<std::uint32_t> nodes;
  for (const std::int32_t node : vector_of<std::int32_t>(description["node_of_rank"]))
    nodes.push_back(static_cast<std::uint32_t>(node));
  new (self) Job(read_network(description),
                 from_values<mpi::MpiSpec>(named_values(nb::cast<nb::dict>(description["mpi"]))),
                 std::move(program), std::move(nodes), seed, std::move(recording));
}

nb::dict rank_times(const Job& job) {
  std::vector<std::int64_t> compute(job.ranks()), overhead(compute), waiting(compute), transfer(compute),
      end(compute);
  for (std::uint32_t i = 0; i < job.ranks(); ++i) {
    const mpi::Rank& rank = job.rank(i);
    compute[i] = rank.times.compute;
    overhead[i] = rank.times.overhead;
    waiting[i] = rank.times.waiting;
    transfer[i] = rank.times.transfer;
    end[i] = rank.state == mpi::Rank::State::done ? rank.end : -1;
  }
  nb::dict out;
  out["compute"] = array_of(std::move(compute));
  out["overhead"] = array_of(std::move(overhead));
  out["waiting"] = array_of(std::move(waiting));
  out["transfer"] = array_of(std::move(transfer));
  out["end"] = array_of(std::move(end));
  return out;
}

nb::dict totals(const Job& job) {
  const mpi::HostCounts counts = job.counts();
  const network::Totals network = job.network().totals();
  nb::dict out;
  out["messages"] = counts.messages + counts.local_messages;
  out["bytes"] = counts.bytes + counts.local_bytes;
  out["local_messages"] = counts.local_messages;
  out["eager"] = counts.eager;
  out["unexpected"] = counts.unexpected;
  out["rendezvous"] = counts.rendezvous;
  out["collectives"] = counts.collectives;
  out["network_messages"] = network.messages;
  out["packets"] = network.packets;
  out["packet_hops"] = network.packet_hops;
  return out;
}

nb::dict latency(const Job& job) {
  const std::vector<std::int64_t> counts = job.latencies();
  std::vector<std::int64_t> lower, count;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    lower.push_back(Histogram::lower_bound(i));
    count.push_back(counts[i]);
  }
  nb::dict out;
  out["lower"] = array_of(std::move(lower));
  out["count"] = array_of(std::move(count));
  return out;
}

nb::dict links(const Job& job) {
  using network::LinkReport;
  const std::vector<LinkReport> reports = job.network().links();
  nb::dict out;
  out["from"] = column_of<std::int64_t>(reports, &LinkReport::from);
  out["to"] = column_of<std::int64_t>(reports, &LinkReport::to);
  out["from_node"] =
      nb::cast(column_of<std::uint8_t>(reports, &LinkReport::from_node)).attr("astype")("bool");
  out["to_node"] = nb::cast(column_of<std::uint8_t>(reports, &LinkReport::to_node)).attr("astype")("bool");
  out["link"] = column_of<std::int64_t>(reports, &LinkReport::link);
  out["bytes"] = column_of<std::int64_t>(reports, &LinkReport::bytes);
  out["packets"] = column_of<std::int64_t>(reports, &LinkReport::packets);
  out["busy"] = column_of<std::int64_t>(reports, &LinkReport::busy);
  out["queueing"] = column_of<std::int64_t>(reports, &LinkReport::queueing);
  return out;
}

// What links carried and what waited for them, link by link and interval by interval.
nb::dict link_history(const Job& job) {
  using network::LinkReport;
  const std::vector<LinkReport> reports = job.network().links();
  std::size_t intervals = 0;
  for (const LinkReport& report : reports)
    intervals = std::max({intervals, report.sent.size(), report.waited.size()});
  const auto table = [&](std::vector<float> LinkReport::* series) {
    std::vector<float> values(intervals * reports.size());
    for (std::size_t i = 0; i < reports.size(); ++i)
      std::copy((reports[i].*series).begin(), (reports[i].*series).end(),
                values.begin() + static_cast<std::ptrdiff_t>(i * intervals));
    return array_of(std::move(values)).attr("reshape")(reports.size(), intervals);
  };
  nb::dict out;
  out["sent"] = table(&LinkReport::sent);
  out["waited"] = table(&LinkReport::waited);
  out["interval"] = reports.empty() ? Time{0} : reports.front().interval;
  return out;
}

// From its beginning.
nb::dict critical_path(const Job& job) {
  using mpi::PathPiece;
  Job::CriticalPath path = job.critical_path();
  std::reverse(path.pieces.begin(), path.pieces.end());
  nb::list kinds;
  for (const PathPiece& piece : path.pieces) kinds.append(piece.message ? "message" : "run");
  nb::dict out;
  out["rank"] = column_of<std::int64_t>(path.pieces, &PathPiece::rank);
  out["begin"] = column_of<std::int64_t>(path.pieces, &PathPiece::begin);
  out["end"] = column_of<std::int64_t>(path.pieces, &PathPiece::end);
  out["kind"] = kinds;
  out["peer"] = column_of<std::int64_t>(path.pieces, &PathPiece::peer);
  out["operation"] = column_of<std::int64_t>(path.pieces, &PathPiece::operation);
  out["complete"] = path.complete;
  return out;
}

nb::dict completions(const Job& job) {
  using mpi::Completion;
  const std::vector<Completion> all = job.completions();
  nb::dict out;
  out["rank"] = column_of<std::int64_t>(all, &Completion::rank);
  out["operation"] = column_of<std::int64_t>(all, &Completion::operation);
  out["source"] = column_of<std::int64_t>(all, &Completion::source);
  out["tag"] = column_of<std::int64_t>(all, &Completion::tag);
  out["value"] = column_of<std::int64_t>(all, &Completion::value);
  return out;
}

nb::dict timeline(const Job& job) {
  using mpi::Span;
  const std::vector<Span> all = job.spans();
  nb::dict out;
  out["rank"] = column_of<std::int64_t>(all, &Span::rank);
  out["operation"] = column_of<std::int64_t>(all, &Span::operation);
  out["begin"] = column_of<std::int64_t>(all, &Span::begin);
  out["end"] = column_of<std::int64_t>(all, &Span::end);
  return out;
}

// One process per rank in the trace; `names` are those of the operations.
void write_timeline(const Job& job, const std::string& path, const std::vector<std::string>& names,
                    Time tick) {
  std::map<std::uint32_t, Timeline> timelines;
  for (const mpi::Span& span : job.spans()) {
    Timeline& shown = timelines[span.rank];
    const std::string name =
        span.operation < names.size()
            ? names[span.operation]
            : std::string(mpi::kind_name(job.context().program.operations[span.operation].kind));
    shown.span(shown.name(name), span.begin, span.end);
  }
  std::vector<TimelineSource> sources;
  for (const auto& [rank, shown] : timelines) sources.push_back({"rank " + std::to_string(rank), &shown});
  const nb::gil_scoped_release released;
  write_perfetto(path, sources, tick);
}

nb::dict algorithms() {
  mpi::update_algorithms();
  nb::dict out;
  for (const mpi::AlgorithmInfo& info : mpi::algorithm_infos()) {
    const std::string collective(mpi::kind_name(info.collective));
    if (!out.contains(collective.c_str())) out[collective.c_str()] = nb::dict();
    nb::cast<nb::dict>(out[collective.c_str()])[nb::cast(info.name)] = static_cast<int>(info.algorithm);
  }
  return out;
}

// The actions of one member of a collective: whom it sends to and receives from (-1: nobody), the bytes of
// both, and whether it waits then for all that it has begun.
nb::list collective_actions(const std::string& kind, int algorithm, const std::string& library,
                            std::uint32_t rank, const std::vector<std::uint32_t>& nodes, std::uint64_t bytes,
                            std::uint32_t root, std::uint64_t segment) {
  const auto member = [](std::uint32_t number) {
    return number == mpi::none ? std::int64_t{-1} : std::int64_t{number};
  };
  nb::list out;
  for (std::size_t i = 0; i < mpi::kind_count; ++i) {
    const auto collective = static_cast<mpi::OperationKind>(i);
    if (mpi::kind_name(collective) != kind) continue;
    const auto chooser = mpi::make_mpi_library(library);
    const mpi::WrittenCall call{rank, root, bytes, segment, chooser.get()};
    for (const mpi::Action& action :
         mpi::written_out(call, collective, static_cast<mpi::Algorithm>(algorithm), nodes))
      out.append(nb::make_tuple(member(action.to), action.send_bytes, member(action.from),
                                action.receive_bytes, action.wait));
  }
  return out;
}

}  // namespace

network::NetworkDescription read_network(const nb::dict& dict) {
  network::NetworkDescription description;
  description.spec = network::network_spec(named_values(nb::cast<nb::dict>(dict["network"])));
  if (dict.contains("graph")) {
    const auto graph = nb::cast<nb::dict>(dict["graph"]);
    description.graph.switches = nb::cast<std::uint32_t>(graph["switches"]);
    description.graph.from = vector_of<std::uint32_t>(graph["from"]);
    description.graph.to = vector_of<std::uint32_t>(graph["to"]);
    description.graph.latency = vector_of<Time>(graph["latency"]);
    description.graph.bandwidth = vector_of<std::int64_t>(graph["bandwidth"]);
    description.graph.node_switch = vector_of<std::uint32_t>(graph["node_switch"]);
  }
  if (dict.contains("faults")) {
    for (const nb::handle entry : nb::cast<nb::list>(dict["faults"])) {
      const auto fault = nb::cast<nb::tuple>(entry);
      description.faults.push_back({nb::cast<std::uint32_t>(fault[0]), nb::cast<std::int64_t>(fault[1]),
                                    nb::cast<std::int64_t>(fault[2]), nb::cast<double>(fault[3])});
    }
  }
  return description;
}

void bind_network(nb::module_& module) {
  nb::class_<Job>(module, "NetworkJob")
      .def("__init__", &make_job, nb::arg("description"), nb::arg("program"), nb::arg("seed") = 0,
           nb::arg("timeline") = nb::none(), nb::arg("critical_path") = true, nb::arg("check") = false)
      .def_prop_ro("simulation", nb::overload_cast<>(&Job::simulation), nb::rv_policy::reference_internal)
      .def(
          "run",
          [](nb::handle self, std::uint32_t threads, Time until, nb::object progress,
             const std::string& queue) {
            return self.attr("simulation").attr("run")(until, threads, queue, progress);
          },
          nb::arg("threads") = 1, nb::arg("until") = never, nb::arg("progress") = nb::none(),
          nb::arg("queue") = "radix")
      .def("statistics", [](nb::handle self) { return self.attr("simulation").attr("statistics")(); })
      .def("ranks", &rank_times)
      .def("totals", &totals)
      .def_prop_ro("operations_begun", &Job::operations_begun)
      .def("latency", &latency)
      .def("links", &links)
      .def("link_history", &link_history)
      .def("critical_path", &critical_path)
      .def("completions", &completions)
      .def("timeline", &timeline)
      .def("write_timeline", &write_timeline, nb::arg("path"), nb::arg("names"), nb::arg("tick") = picosecond)
      .def("explain_deadlock", &Job::explain_deadlock)
      .def("path", [](const Job& job, std::uint32_t source, std::uint32_t destination) {
        return job.network().path(source, destination);
      });

  // Parameters of a kind of topology that has at least so many nodes, of switches with so many ports.
  module.def(
      "fit_topology",
      [](const std::string& kind, std::uint32_t nodes, std::uint32_t ports) {
        return value_dict(make_plugin<network::TopologyModel>(kind, NamedValues{})->fit(nodes, ports));
      },
      nb::arg("kind"), nb::arg("nodes"), nb::arg("ports"));
  // Capacity of the topology of a network in nodes (None: any number), and how a picture arranges its
  // switches: the extents of a box or the size of a group, if either is set.
  module.def(
      "describe_topology",
      [](const nb::dict& values) {
        network::NetworkDescription description;
        description.spec = network::network_spec(named_values(values));
        description.spec.topology.nodes = 0;
        const auto model = network::make_topology(description.spec.topology);
        nb::dict out;
        out["capacity"] = nb::none();
        out["box"] = nb::list();
        out["group"] = 0;
        if (!model->fixes_nodes()) return out;
        model->build(description);
        const network::Layout layout = model->layout();
        out["capacity"] = model->capacity();
        out["box"] = layout.box;
        out["group"] = layout.group;
        return out;
      },
      nb::arg("network"));

  module.def("network_tables", [] {
    nb::dict out;
    out["network"] = field_list(network::network_fields());
    out["mpi"] = field_list(field_infos<mpi::MpiSpec>());
    return out;
  });
  module.def("mpi_operation_fields", [] {
    return std::vector<std::string_view>(mpi::operation_fields.begin(), mpi::operation_fields.end());
  });
  module.def("mpi_operations", [] {
    nb::dict out;
    for (std::size_t i = 0; i < mpi::kind_count; ++i)
      out[nb::cast(mpi::kind_name(static_cast<mpi::OperationKind>(i)))] = i;
    return out;
  });
  module.def("mpi_algorithms", &algorithms);
  module.def("mpi_collective_actions", &collective_actions, nb::arg("kind"), nb::arg("algorithm"),
             nb::arg("library"), nb::arg("rank"), nb::arg("nodes"), nb::arg("bytes"), nb::arg("root") = 0,
             nb::arg("segment") = 0);
}
