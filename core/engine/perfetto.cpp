// SPDX-License-Identifier: Apache-2.0
#include "engine/perfetto.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "engine/file_writer.hpp"
#include "engine/perfetto_fields.hpp"

namespace manyscale {
namespace {

// A protobuf message under construction.
class Message {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void real(int field, double value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 1);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(bits >> shift & 0xff));
  }
  void text(int field, const std::string& value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

using namespace perfetto;

constexpr std::uint64_t root_track = 1;
constexpr std::uint64_t sequence = 1;
constexpr std::uint64_t state_cleared = 1, needs_state = 2;

// One packet's worth of what happened; sorted, so that begins and ends nest.
struct Moment {
  Time time;
  EventType type;
  Time other_end;  // of the span
  std::uint64_t track;
  std::uint64_t name;
  double value;

  // At one time: ends first, the one that began last leading; then begins, the one that ends last leading.
  auto key() const {
    const int phase = type == slice_end ? 0 : type == slice_begin ? 1 : 2;
    return std::tuple{time, phase, -other_end};
  }
};

class Writer {
 public:
  Writer(const std::string& path, Time tick) : tick_(tick), file_(path) {
    Message process;
    process.number(field::process_pid, 1);
    process.text(field::process_name, "manyscale (1 ns shown = " + std::to_string(tick) + " fs simulated)");
    Message descriptor;
    descriptor.number(field::descriptor_uuid, root_track);
    descriptor.message(field::descriptor_process, process);
    Message packet;
    packet.number(field::packet_flags, state_cleared);
    packet.message(field::packet_descriptor, descriptor);
    write(packet);
  }

  void add(const TimelineSource& source) {
    std::vector<std::uint64_t> names;
    for (const auto& name : source.timeline->names()) names.push_back(intern(name));
    const auto main_track = next_track_;
    bool main_described = false;
    std::map<std::pair<bool, std::uint32_t>, std::uint64_t> tracks;
    for (const auto& record : source.timeline->records()) {
      if (!main_described) {
        describe(next_track_++, root_track, source.component, false);
        main_described = true;
      }
      const bool is_counter = record.type == Timeline::RecordType::counter;
      const auto [entry, fresh] =
          tracks.try_emplace({is_counter, is_counter ? record.name : record.track}, main_track);
      if (fresh && (is_counter || record.track != 0)) {
        entry->second = next_track_++;
        const auto& name =
            is_counter ? source.timeline->names()[record.name] : "track " + std::to_string(record.track);
        describe(entry->second, main_track, name, is_counter);
      }
      add(record, entry->second, names[record.name]);
    }
  }

  void finish() {
    std::stable_sort(moments_.begin(), moments_.end(),
                     [](const Moment& a, const Moment& b) { return a.key() < b.key(); });
    for (const Moment& moment : moments_) {
      Message event;
      event.number(field::event_type, moment.type);
      event.number(field::event_track, moment.track);
      if (moment.type == counter) event.real(field::event_value, moment.value);
      if (moment.type == slice_begin || moment.type == instant)
        event.number(field::event_name_id, moment.name);
      Message packet;
      packet.number(field::packet_timestamp, static_cast<std::uint64_t>(moment.time / tick_));
      packet.number(field::packet_flags, needs_state);
      packet.message(field::packet_track_event, event);
      write(packet);
    }
    file_.close();
  }

 private:
  void add(const Timeline::Record& record, std::uint64_t track, std::uint64_t name) {
    if (record.type == Timeline::RecordType::counter) {
      moments_.push_back({record.begin, counter, 0, track, name, record.value});
    } else if (record.begin / tick_ == record.end / tick_) {
      moments_.push_back({record.begin, instant, 0, track, name, 0});
    } else {
      moments_.push_back({record.begin, slice_begin, record.end, track, name, 0});
      moments_.push_back({record.end, slice_end, record.begin, track, name, 0});
    }
  }

  std::uint64_t intern(const std::string& name) {
    const auto [entry, fresh] = interned_.try_emplace(name, interned_.size() + 1);
    if (fresh) {
      Message event_name;
      event_name.number(field::event_name_iid, entry->second);
      event_name.text(field::event_name_text, name);
      Message data;
      data.message(field::interned_event_names, event_name);
      Message packet;
      packet.message(field::packet_interned, data);
      write(packet);
    }
    return entry->second;
  }

  void describe(std::uint64_t track, std::uint64_t parent, const std::string& name, bool is_counter) {
    Message descriptor;
    descriptor.number(field::descriptor_uuid, track);
    descriptor.number(field::descriptor_parent, parent);
    descriptor.text(field::descriptor_name, name);
    if (is_counter) descriptor.message(field::descriptor_counter, Message{});
    Message packet;
    packet.message(field::packet_descriptor, descriptor);
    write(packet);
  }

  void write(Message& packet) {
    packet.number(field::packet_sequence, sequence);
    Message framed;
    framed.message(field::trace_packet, packet);
    file_.write(framed.bytes());
  }

  Time tick_;
  FileWriter file_;
  std::uint64_t next_track_ = root_track + 1;
  std::map<std::string, std::uint64_t> interned_;
  std::vector<Moment> moments_;
};

}  // namespace

void write_perfetto(const std::string& path, const std::vector<TimelineSource>& sources, Time tick) {
  Writer writer(path, tick);
  for (const auto& source : sources) writer.add(source);
  writer.finish();
}

}  // namespace manyscale
