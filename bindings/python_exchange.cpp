// SPDX-License-Identifier: Apache-2.0
#include "python_exchange.hpp"

#include <utility>

using namespace manyscale;

namespace {

nb::object view(std::byte* data, std::size_t size) {
  return nb::steal(
      PyMemoryView_FromMemory(reinterpret_cast<char*>(data), static_cast<Py_ssize_t>(size), PyBUF_WRITE));
}

}  // namespace

PythonExchange::PythonExchange(nb::object processes)
    : object_(std::move(processes)),
      process_(nb::cast<std::uint32_t>(object_.attr("process"))),
      processes_(nb::cast<std::uint32_t>(object_.attr("processes"))) {}

void PythonExchange::exchange(const BarrierExchange& barrier) {
  const nb::gil_scoped_acquire held;
  // Each process gets the record, and how many bytes follow for it.
  pieces_out_.clear();
  for (std::uint32_t process = 0; process < processes_; ++process) {
    pieces_out_.insert(pieces_out_.end(), barrier.own.begin(), barrier.own.end());
    put(pieces_out_, static_cast<std::uint64_t>(barrier.outgoing[process].size()));
  }
  pieces_in_.resize(pieces_out_.size());
  object_.attr("alltoall")(view(pieces_out_.data(), pieces_out_.size()),
                           view(pieces_in_.data(), pieces_in_.size()));
  barrier.records.clear();
  nb::list outgoing, incoming;
  BytesReader reader(pieces_in_);
  for (std::uint32_t process = 0; process < processes_; ++process) {
    const auto record = reader.take(barrier.own.size());
    barrier.records.insert(barrier.records.end(), record.begin(), record.end());
    Bytes& arrived = barrier.incoming[process];
    arrived.resize(reader.take<std::uint64_t>());
    if (process == process_) continue;
    Bytes& sent = barrier.outgoing[process];
    if (!sent.empty()) outgoing.append(nb::make_tuple(process, view(sent.data(), sent.size())));
    if (!arrived.empty()) incoming.append(nb::make_tuple(process, view(arrived.data(), arrived.size())));
  }
  if (nb::len(outgoing) > 0 || nb::len(incoming) > 0) object_.attr("transfer")(outgoing, incoming);
}
