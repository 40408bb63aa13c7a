// SPDX-License-Identifier: Apache-2.0
#include "engine/perfetto_reader.hpp"

#include <bit>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "engine/perfetto_fields.hpp"

namespace manyscale {
namespace {

namespace field = perfetto::field;

// A protobuf message that is being read, field by field.
class Fields {
 public:
  Fields(std::string_view bytes, std::size_t offset) : bytes_(bytes), offset_(offset) {}

  // Goes to the next field; false at the end.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t key = varint();
    number_ = static_cast<int>(key >> 3 & 0x1fffffff);
    text_ = {};
    value_ = 0;
    switch (key & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        value_ = fixed(8);
        break;
      case 2: {
        const std::uint64_t size = varint();
        if (size > bytes_.size() - at_) fail("a field is longer than what is left");
        text_begin_ = at_;
        text_ = bytes_.substr(at_, size);
        at_ += size;
        break;
      }
      case 5:
        value_ = fixed(4);
        break;
      default:
        fail("a field of an unknown kind");
    }
    return true;
  }

  int number() const { return number_; }
  std::uint64_t value() const { return value_; }
  double real() const { return std::bit_cast<double>(value_); }
  std::string_view text() const { return text_; }
  Fields message() const { return {text_, offset_ + text_begin_}; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail("the file ends within a number");
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is too long");
  }
  std::uint64_t fixed(std::size_t size) {
    if (bytes_.size() - at_ < size) fail("the file ends within a number");
    std::uint64_t value = 0;
    for (std::size_t byte = 0; byte < size; ++byte) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes_[at_ + byte])) << (8 * byte);
    }
    at_ += size;
    return value;
  }
  [[noreturn]] void fail(const char* what) const {
    throw std::invalid_argument(std::string(what) + ", at byte " + std::to_string(offset_ + at_));
  }

  std::string_view bytes_;
  std::size_t offset_;  // of the message in the file
  std::size_t at_ = 0;
  std::size_t text_begin_ = 0;
  int number_ = 0;
  std::uint64_t value_ = 0;
  std::string_view text_;
};

class Reader {
 public:
  TimelineFile read(std::string_view bytes) {
    Fields trace(bytes, 0);
    while (trace.next()) {
      if (trace.number() == field::trace_packet) packet(trace.message());
    }
    for (const auto& [track, parent] : parents_) {
      const auto entry = tracks_.find(parent);
      if (entry != tracks_.end()) out_.tracks[static_cast<std::size_t>(track)].parent = entry->second;
    }
    return std::move(out_);
  }

 private:
  void packet(Fields packet) {
    std::int64_t time = 0;
    while (packet.next()) {
      switch (packet.number()) {
        case field::packet_timestamp:
          time = static_cast<std::int64_t>(packet.value());
          break;
        case field::packet_descriptor:
          descriptor(packet.message());
          break;
        case field::packet_interned:
          interned(packet.message());
          break;
        case field::packet_track_event:
          event(packet.message(), time);  // our files have the time first
          break;
        default:
          break;
      }
    }
  }

  void descriptor(Fields descriptor) {
    std::uint64_t uuid = 0, parent = 0;
    std::string name;
    bool counter = false, process = false;
    while (descriptor.next()) {
      if (descriptor.number() == field::descriptor_uuid) uuid = descriptor.value();
      if (descriptor.number() == field::descriptor_parent) parent = descriptor.value();
      if (descriptor.number() == field::descriptor_name) name = descriptor.text();
      if (descriptor.number() == field::descriptor_counter) counter = true;
      if (descriptor.number() == field::descriptor_process) {
        process = true;
        for (auto inner = descriptor.message(); inner.next();) {
          if (inner.number() == field::process_name) out_.process = inner.text();
        }
      }
    }
    if (process) return;
    const auto index = track(uuid);
    out_.tracks[static_cast<std::size_t>(index)].name = std::move(name);
    out_.tracks[static_cast<std::size_t>(index)].counter = counter;
    if (parent != 0) parents_.emplace_back(index, parent);
  }

  void interned(Fields data) {
    while (data.next()) {
      if (data.number() != field::interned_event_names) continue;
      std::uint64_t id = 0;
      std::string_view text;
      for (auto name = data.message(); name.next();) {
        if (name.number() == field::event_name_iid) id = name.value();
        if (name.number() == field::event_name_text) text = name.text();
      }
      names_[id] = static_cast<std::int32_t>(out_.names.size());
      out_.names.emplace_back(text);
    }
  }

  void event(Fields event, std::int64_t time) {
    std::uint64_t type = 0, uuid = 0, name = 0;
    double value = 0;
    while (event.next()) {
      if (event.number() == field::event_type) type = event.value();
      if (event.number() == field::event_track) uuid = event.value();
      if (event.number() == field::event_name_id) name = event.value();
      if (event.number() == field::event_value) value = event.real();
    }
    const auto index = track(uuid);
    auto& open = open_[static_cast<std::size_t>(index)];
    if (type == perfetto::counter) {
      out_.levels.push_back({time, value, index});
    } else if (type == perfetto::slice_begin || type == perfetto::instant) {
      if (type == perfetto::slice_begin) open.push_back(out_.spans.size());
      out_.spans.push_back({time, time, index, named(name)});
    } else if (type == perfetto::slice_end && !open.empty()) {
      out_.spans[open.back()].end = time;
      open.pop_back();
    }
  }

  std::int32_t track(std::uint64_t uuid) {
    const auto [entry, fresh] = tracks_.try_emplace(uuid, static_cast<std::int32_t>(out_.tracks.size()));
    if (fresh) {
      out_.tracks.push_back({"track " + std::to_string(uuid), -1, false});
      open_.emplace_back();
    }
    return entry->second;
  }

  std::int32_t named(std::uint64_t id) {
    const auto [entry, fresh] = names_.try_emplace(id, static_cast<std::int32_t>(out_.names.size()));
    if (fresh) out_.names.emplace_back("unnamed");
    return entry->second;
  }

  TimelineFile out_;
  std::unordered_map<std::uint64_t, std::int32_t> tracks_, names_;
  std::vector<std::vector<std::size_t>> open_;  // by track: spans that have not ended
  std::vector<std::pair<std::int32_t, std::uint64_t>> parents_;
};

}  // namespace

TimelineFile read_perfetto(std::string_view bytes) {
  return Reader().read(bytes);
}

}  // namespace manyscale
