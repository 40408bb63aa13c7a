// SPDX-License-Identifier: Apache-2.0
// Numbers of the fields of Perfetto's trace.proto that we write and read.
#pragma once
#include <cstdint>

namespace manyscale::perfetto {

namespace field {
constexpr int trace_packet = 1;
constexpr int packet_timestamp = 8, packet_sequence = 10, packet_track_event = 11, packet_interned = 12,
              packet_flags = 13, packet_descriptor = 60;
constexpr int descriptor_uuid = 1, descriptor_name = 2, descriptor_process = 3, descriptor_parent = 5,
              descriptor_counter = 8;
constexpr int process_pid = 1, process_name = 6;
constexpr int event_type = 9, event_name_id = 10, event_track = 11, event_value = 44;
constexpr int interned_event_names = 2, event_name_iid = 1, event_name_text = 2;
}  // namespace field

enum EventType : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

}  // namespace manyscale::perfetto
