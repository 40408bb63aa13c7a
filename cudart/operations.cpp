// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "capture.hpp"
#include "graph_memory.hpp"
#include "graphs.hpp"
#include "host_functions.hpp"
#include "managed.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "ranges.hpp"
#include "registry.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::uint64_t kLargestCopy = std::uint64_t{1} << 40;

std::uint32_t async_flag(Wait wait) {
  return wait == Wait::yes ? 0 : wire::kAsync;
}

// A side of a copy as the server sees it.
struct Side {
  wire::CopySide kind = wire::CopySide::staged;
  std::uint64_t end = ~std::uint64_t{0};  // of the allocation
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;

  bool staged() const { return kind == wire::CopySide::staged; }
  // The server knows it as we do: nothing of it can be refused.
  bool is_known_device_memory() const { return kind == wire::CopySide::device && end != ~std::uint64_t{0}; }
  // All rows are in the allocation. What is unknown here (variables of modules), the server checks.
  bool holds(std::uint64_t width, std::uint64_t rows, std::uint64_t slices) const {
    return staged() || address + (slices - 1) * slice + (rows - 1) * pitch + width <= end;
  }
};

Side side_of(const Region& region) {
  const std::uint64_t address = device_address(region.pointer);
  if (address == 0) return {};
  const auto known = find_allocation(address);
  if (!known) return {wire::CopySide::device, ~std::uint64_t{0}, address, region.pitch, region.slice};
  // Mapped memory may go on in the next mapping, as the server knows.
  const std::uint64_t end = known->mapped ? ~std::uint64_t{0} : known->address + known->bytes;
  return {static_cast<wire::CopySide>(known->kind), end, address, region.pitch, region.slice};
}

bool direction_fits(CopyKind kind, const Side& target, const Side& source) {
  const bool from_host = kind == host_to_device || kind == host_to_host;
  const bool to_host = kind == device_to_host || kind == host_to_host;
  if (kind == any_direction) return true;
  return !(from_host ? source.kind == wire::CopySide::device : source.staged()) &&
         !(to_host ? target.kind == wire::CopySide::device : target.staged());
}

// Calls `row(packed offset, pointer of the row)` for each row of a region.
template <class Row>
void for_each_row(const CopyOperation& copy, const Region& region, Row row) {
  auto* first = static_cast<std::byte*>(region.pointer);
  std::uint64_t packed = 0;
  for (std::uint64_t z = 0; z < copy.slices; ++z)
    for (std::uint64_t y = 0; y < copy.rows; ++y, packed += copy.width)
      row(packed, first + z * region.slice + y * region.pitch);
}

void copy_on_host(const CopyOperation& copy) {
  for (std::uint64_t z = 0; z < copy.slices; ++z)
    for (std::uint64_t y = 0; y < copy.rows; ++y)
      std::memmove(
          static_cast<std::byte*>(copy.target.pointer) + z * copy.target.slice + y * copy.target.pitch,
          static_cast<const std::byte*>(copy.source.pointer) + z * copy.source.slice + y * copy.source.pitch,
          copy.width);
}

// Whether any device takes a grid of this size.
bool is_grid(const Dim3& grid) {
  constexpr unsigned most_x = 0x7fffffff, most = 65535;
  return grid.x - 1 < most_x && grid.y - 1 < most && grid.z - 1 < most;
}

Error perform_one(Stream&, const EmptyOperation&, Wait) {
  return Error::success;
}

Error perform_one(Stream& stream, const LaunchOperation& launch, Wait) {
  const FunctionLayout* layout = nullptr;
  if (const Error error = lay_out(*launch.function, layout); error != Error::success) return error;
  close_managed();
  const auto& [grid, block] = std::pair(launch.grid, launch.block);
  // What the server took once it takes again.
  const LaunchShape shape{stream.number == 0 ? current_device() : stream.device, block, launch.shared};
  Function& function = *launch.function;
  bool certain = false;
  {
    const std::lock_guard lock(function.mutex);
    certain = launch.flags == 0 && function.accepted == shape && is_grid(grid);
  }
  announce_ranges();
  const Error error = call_or_post<wire::Launch>(
      certain,
      {function.number, stream.number, launch.flags, grid.x, grid.y, grid.z, block.x, block.y, block.z,
       static_cast<std::uint32_t>(launch.shared), static_cast<std::uint32_t>(launch.parameters.size())},
      launch.parameters);
  if (!certain && error == Error::success) {
    const std::lock_guard lock(function.mutex);
    function.accepted = shape;
  }
  return error;
}

Error perform_one(Stream& stream, const CopyOperation& copy, Wait wait) {
  if (copy.width == 0 || copy.rows == 0 || copy.slices == 0) return Error::success;
  if (copy.target.pointer == nullptr || copy.source.pointer == nullptr) return Error::invalid_value;
  if (copy.width > kLargestCopy || copy.rows > kLargestCopy / copy.width ||
      copy.slices > kLargestCopy / (copy.width * copy.rows))
    return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  const Side target = side_of(copy.target);
  const Side source = side_of(copy.source);
  if (!direction_fits(copy.kind, target, source) || !target.holds(copy.width, copy.rows, copy.slices) ||
      !source.holds(copy.width, copy.rows, copy.slices))
    return Error::invalid_value;
  if (target.staged() && source.staged()) {
    const Error error = call<wire::StreamSynchronize>({stream.number});
    if (error == Error::success) copy_on_host(copy);
    return error;
  }
  if (target.kind == wire::CopySide::managed || source.kind == wire::CopySide::managed) close_managed();
  announce_ranges();
  const std::uint64_t bytes = copy.width * copy.rows * copy.slices;
  const wire::Copy::Request request{stream.number,
                                    async_flag(wait),
                                    static_cast<std::uint32_t>(source.kind),
                                    static_cast<std::uint32_t>(target.kind),
                                    source.address,
                                    source.pitch,
                                    source.slice,
                                    target.address,
                                    target.pitch,
                                    target.slice,
                                    copy.width,
                                    copy.rows,
                                    copy.slices};
  if (source.staged() && bytes <= wire::kLargestInline) {
    std::array<std::byte, wire::kLargestInline> data;
    for_each_row(copy, copy.source, [&](std::uint64_t at, const std::byte* row) {
      std::memcpy(data.data() + at, row, copy.width);
    });
    return call_or_post<wire::Copy>(target.is_known_device_memory(), request, std::span(data).first(bytes));
  }
  std::byte* staging = nullptr;
  if (target.staged() || source.staged()) {
    staging = connection().staging(bytes);
    if (staging == nullptr) return connection().is_open() ? Error::memory_allocation : Error::unknown;
  }
  if (source.staged())
    for_each_row(copy, copy.source,
                 [&](std::uint64_t at, const std::byte* row) { std::memcpy(staging + at, row, copy.width); });
  const Error error = call<wire::Copy>(request, nullptr, {}, nullptr, source.staged() ? bytes : 0);
  if (error == Error::success && target.staged())
    for_each_row(copy, copy.target,
                 [&](std::uint64_t at, std::byte* row) { std::memcpy(row, staging + at, copy.width); });
  if (staging != nullptr) connection().trim_staging();
  return error;
}

Error perform_one(Stream& stream, const FillOperation& fill, Wait wait) {
  if (fill.width == 0 || fill.rows == 0 || fill.slices == 0) return Error::success;
  if (const Error error = connect_thread(); error != Error::success) return error;
  const Side target = side_of(fill.target);
  if (target.staged() || !target.holds(fill.width * fill.element, fill.rows, fill.slices))
    return Error::invalid_value;
  if (target.kind == wire::CopySide::managed) close_managed();
  // The host waits only for fills of memory that it can read.
  if (target.kind == wire::CopySide::device) wait = Wait::no;
  announce_ranges();
  return call_or_post<wire::Set>(target.is_known_device_memory(),
                                 {stream.number, async_flag(wait), target.address, target.pitch, target.slice,
                                  fill.width, fill.rows, fill.slices, fill.value, fill.element});
}

Error perform_one(Stream& stream, const HostOperation& host, Wait) {
  const std::uint64_t number =
      keep_host_function([function = host.function, data = host.data] { function(data); });
  return call<wire::HostFunction>({stream.number, number});
}

Error perform_one(Stream& stream, const RecordOperation& record, Wait) {
  return call_or_post<wire::EventRecord>(true, {record.event->number, stream.number});
}

Error perform_one(Stream& stream, const WaitOperation& waiting, Wait) {
  return call_or_post<wire::StreamWaitEvent>(true, {stream.number, waiting.event->number});
}

Error perform_one(Stream& stream, const PrefetchOperation& prefetch, Wait) {
  close_managed();
  return call<wire::Prefetch>(
      {stream.number, prefetch.device, reinterpret_cast<std::uint64_t>(prefetch.pointer), prefetch.bytes});
}

// Memory of a graph's allocation node has its address from the node's beginning on.
Error perform_one(Stream&, const AllocateOperation& allocation, Wait) {
  launch_graph_memory(reinterpret_cast<std::uint64_t>(allocation.pointer));
  return Error::success;
}

Error perform_one(Stream& stream, const FreeOperation& freed, Wait) {
  const auto address = reinterpret_cast<std::uint64_t>(freed.pointer);
  return free_graph_memory(address) ? Error::success : release_in_stream(address, stream.number);
}

Error perform_one(Stream& stream, const ChildOperation& child, Wait) {
  return perform_graph(stream, *child.graph);
}

}  // namespace

Error perform(Stream& stream, const Operation& operation, Wait wait) {
  return std::visit([&](const auto& one) { return perform_one(stream, one, wait); }, operation);
}

Error enqueue(Stream& stream, Operation operation, Wait wait) {
  if (stream.capture != nullptr) return capture_operation(stream, std::move(operation), wait);
  return perform(stream, operation, wait);
}

}  // namespace manyscale::cudart
