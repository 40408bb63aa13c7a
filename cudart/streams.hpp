// SPDX-License-Identifier: Apache-2.0
// Streams and events as the program holds them; the server knows them by number.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "abi.hpp"

namespace manyscale::cudart {

struct Capture;

struct Stream {
  std::uint32_t number = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  // While it is captured: into what, and the nodes that its next one depends on.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> last_nodes;
  LaunchAttribute attribute{};  // the last one set, see cudaStreamGetAttribute
};

struct Event {
  std::uint32_t number = 0;
  int device = 0;
  unsigned flags = 0;
  // When it was recorded in a captured stream: into what, and after which nodes.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> nodes;
};

// The default stream in a call: the legacy one, or the thread's own (programs compiled so call functions
// whose names end in _ptsz or _ptds).
enum class DefaultStream { legacy, per_thread };

// What a handle of the program stands for; null if there is no such stream, or no server.
Stream* find_stream(Stream* handle, DefaultStream when_null, Error& error);
Event* find_event(Event* handle);

// Does something with the stream behind a handle.
template <class Action>
Error with_stream(Stream* handle, DefaultStream when_null, Action action) {
  Error error = Error::success;
  Stream* stream = find_stream(handle, when_null, error);
  return stream == nullptr ? error : action(*stream);
}

Error create_stream(Stream** made, unsigned flags, int priority);
Error destroy_stream(Stream* handle);
Error create_event(Event** made, unsigned flags);
Error destroy_event(Event* handle);
// After cudaDeviceReset.
void forget_streams_and_events(int device);

}  // namespace manyscale::cudart
