// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/copy_engine.hpp"

#include <algorithm>
#include <cstring>

#include "engine/registry.hpp"

namespace manyscale::gpu {

using memory::Message;
using memory::Op;

namespace {

const Registered<CopyEngine> registered{
    "gpu.copy_engine", "A copy engine of a GPU: copies between host and device or within the device."};

// Fills memory with a pattern.
void repeat(const std::vector<std::byte>& pattern, std::byte* to, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += pattern.size())
    std::memcpy(to + i, pattern.data(), std::min<std::uint64_t>(pattern.size(), bytes - i));
}

// Copies the rows of a shape between two of its sides, by number; -1 is the host's values, which have no
// gaps.
void move_rows(const CopyShape& shape, std::byte* to, const std::byte* from, std::array<int, 2> sides) {
  auto offset_of = [&](int side, std::uint64_t slice, std::uint64_t row) {
    if (side < 0) return (slice * shape.rows + row) * shape.width;
    const auto of = static_cast<unsigned>(side);
    return slice * shape.slice_pitch[of] + row * shape.pitch[of];
  };
  for (std::uint64_t slice = 0; slice < shape.slices; ++slice)
    for (std::uint64_t row = 0; row < shape.rows; ++row)
      std::memmove(to + offset_of(sides[0], slice, row), from + offset_of(sides[1], slice, row), shape.width);
}

}  // namespace

std::uint64_t LineRun::count() const {
  return bytes == 0 ? 0 : (begin + bytes - 1) / line - begin / line + 1;
}

std::uint8_t LineRun::sectors(std::uint64_t index) const {
  const std::uint64_t start = address(index);
  const std::uint64_t first = std::max(begin, start) - start;
  const std::uint64_t last = std::min(begin + bytes, start + line) - start - 1;
  const unsigned below = (1u << (last / memory::sector_bytes + 1)) - 1;
  return static_cast<std::uint8_t>(below & ~((1u << first / memory::sector_bytes) - 1));
}

CopyEngine::CopyEngine(const Spec& spec) : spec_(spec), slices_({spec.slices, spec.line, spec.slice_hash}) {
  declare(statistics_);
  scheduler_.on_receive<&CopyEngine::receive>();
  link_.on_receive<&CopyEngine::page_moved>();
  memory_.on_receive<&CopyEngine::answered>();
  reading_.resize(static_cast<std::size_t>(spec.pages_in_flight + spec.pages_ahead));
}

std::vector<Wait> CopyEngine::waits() const {
  if (!busy_) return {};
  return {{"a copy of " + std::to_string(copy_->bytes) + " bytes has not ended", ""}};
}

void CopyEngine::receive(const CopyStart& start, std::uint32_t) {
  waiting_.push(commands_->commands.at(start.command).priority, start.command);
  if (!busy_) begin_next();
}

void CopyEngine::begin_next() {
  if (waiting_.empty()) return;
  current_ = waiting_.pop();
  Command& command = commands_->commands.at(current_);
  busy_ = true;
  command.begun = now();
  copy_ = &command.copy;
  origin_ = command.origin;
  next_ = completed_ = 0;
  const auto line = static_cast<std::uint64_t>(spec_.line);
  to_ = {copy_->address, copy_->bytes, line};
  from_ = {copy_->source, copy_->bytes, line};
  switch (copy_->kind) {
    case CopyKind::to_device:
      send_pages();
      break;
    case CopyKind::to_host:
      read_pages();
      break;
    case CopyKind::within:
    case CopyKind::fill:
      move_lines();
      break;
  }
  end_if_complete();
}

void CopyEngine::end_if_complete() {
  const bool crosses = copy_->kind == CopyKind::to_device || copy_->kind == CopyKind::to_host;
  if (unanswered_ != 0) return;
  if (crosses ? completed_ != pages() : next_ != (copy_->kind == CopyKind::fill ? to_ : from_).count())
    return;
  move_values(*copy_);
  Command& command = commands_->commands.at(current_);
  ++statistics_.copies;
  statistics_.bytes += static_cast<std::int64_t>(copy_->bytes);
  statistics_.busy += now() - command.begun;
  busy_ = false;
  copy_ = nullptr;
  scheduler_.send({current_});
  begin_next();
}

void CopyEngine::move_values(Copy& copy) const {
  if (copy.bytes == 0) return;
  CopyShape shape = copy.shape;
  if (shape.width == 0) shape = {copy.bytes, 1, 1, {}, {}};
  const bool fills = copy.kind == CopyKind::fill;
  const std::uint64_t other = copy.kind == CopyKind::within ? copy.source : copy.pinned;
  std::byte* const here = copy.memory->checked(copy.address, shape.extent(0, copy.bytes));
  std::byte* const there = other == 0 ? nullptr : copy.memory->checked(other, shape.extent(1, copy.bytes));
  if (here == nullptr || (other != 0 && there == nullptr))
    throw SimulationError("memory was freed while a copy of " + std::to_string(copy.bytes) +
                          " bytes had not ended");
  if (copy.kind == CopyKind::to_host) {
    if (there == nullptr) copy.host.resize(copy.bytes);
    move_rows(shape, there == nullptr ? copy.host.data() : there, here, {there == nullptr ? -1 : 1, 0});
    if (there != nullptr) copy.memory->mark_written(other, shape.extent(1, copy.bytes));
    return;
  }
  if (fills) {
    for (std::uint64_t slice = 0; slice < shape.slices; ++slice)
      for (std::uint64_t row = 0; row < shape.rows; ++row)
        repeat(copy.host, here + slice * shape.slice_pitch[0] + row * shape.pitch[0], shape.width);
  } else {
    move_rows(shape, here, there == nullptr ? copy.host.data() : there, {0, there == nullptr ? -1 : 1});
  }
  copy.memory->mark_written(copy.address, shape.extent(0, copy.bytes));
}

std::uint64_t CopyEngine::pages() const {
  const auto size = static_cast<std::uint64_t>(spec_.page_size);
  return (copy_->bytes + size - 1) / size;
}

LineRun CopyEngine::page_run(std::uint64_t page) const {
  const auto size = static_cast<std::uint64_t>(spec_.page_size);
  return {copy_->address + page * size, std::min(size, copy_->bytes - page * size),
          static_cast<std::uint64_t>(spec_.line)};
}

// Lets pages cross the link, as many as may be on it.
void CopyEngine::send_pages() {
  const bool to_host = copy_->kind == CopyKind::to_host;
  while (on_link_ < spec_.pages_in_flight && (to_host ? !ready_pages_.empty() : next_ < pages())) {
    std::uint64_t page = next_;
    if (to_host) {
      page = ready_pages_.front();
      ready_pages_.pop_front();
    } else {
      ++next_;
    }
    ++on_link_;
    link_.send({page, static_cast<std::uint32_t>(page_run(page).bytes), to_host});
  }
}

// Reads pages that are to go to the host: those that may be on the link, and some ahead.
void CopyEngine::read_pages() {
  while (next_ < pages() && next_ - completed_ < reading_.size()) {
    const std::uint64_t page = next_++;
    if (!spec_.through_l2) {
      ready_pages_.push_back(page);
      continue;
    }
    const LineRun run = page_run(page);
    const auto free = std::ranges::find(reading_, 0, &Reading::lines);
    *free = {page, run.count()};
    const auto slot = static_cast<std::uint64_t>(free - reading_.begin());
    for (std::uint64_t i = 0; i < run.count(); ++i) request(Op::read, run, i, slot);
  }
  send_pages();
}

void CopyEngine::page_moved(const PageMoved& moved, std::uint32_t) {
  --on_link_;
  ++completed_;
  if (copy_->kind == CopyKind::to_host) {
    read_pages();
  } else {
    const LineRun run = page_run(moved.page);
    if (spec_.through_l2)
      for (std::uint64_t i = 0; i < run.count(); ++i) request(Op::write, run, i, moved.page);
    send_pages();
  }
  end_if_complete();
}

// Begins lines of a copy within the device, as many as may be outstanding.
void CopyEngine::move_lines() {
  const bool fills = copy_->kind == CopyKind::fill;
  const LineRun& run = fills ? to_ : from_;
  for (; next_ < run.count() && unanswered_ < static_cast<std::uint64_t>(spec_.outstanding_lines); ++next_)
    request(fills ? Op::write : Op::read, run, next_, next_);
}

// A line of the source has come: the line at its offset_of in the target is written. Where the two lie
// differently in their lines, the target may have one line more or less.
void CopyEngine::line_read(std::uint64_t index) {
  const bool last = index + 1 == from_.count();
  for (std::uint64_t i = index; i < (last ? to_.count() : std::min(index + 1, to_.count())); ++i)
    request(Op::write, to_, i, i);
}

void CopyEngine::answered(const Message& message, std::uint32_t) {
  --unanswered_;
  if (copy_->kind == CopyKind::to_host) {
    Reading& reading = reading_[message.value];
    if (--reading.lines == 0) {
      ready_pages_.push_back(reading.page);
      send_pages();
    }
  } else if (copy_->kind == CopyKind::within || copy_->kind == CopyKind::fill) {
    if (message.op == Op::data) line_read(message.value);
    move_lines();
  }
  end_if_complete();
}

void CopyEngine::request(Op op, const LineRun& run, std::uint64_t index, std::uint64_t value) {
  Message message;
  message.address = run.address(index);
  message.sectors = run.sectors(index);
  message.op = op;
  message.value = static_cast<memory::Value>(value);
  message.origin = origin_;
  message.flags = op == Op::write ? memory::Flag::wants_ack : 0;
  message.destination = static_cast<std::uint16_t>(slices_.slice_of(message.address));
  ++unanswered_;
  ++(op == Op::write ? statistics_.lines_written : statistics_.lines_read);
  memory_.send(message, 0, static_cast<std::uint32_t>(index % memory_.width()));
}

}  // namespace manyscale::gpu
