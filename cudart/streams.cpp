// SPDX-License-Identifier: Apache-2.0
#include "streams.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "capture.hpp"
#include "managed.hpp"
#include "operations.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

struct Handles {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Stream>> streams;
  std::unordered_map<const void*, std::unique_ptr<Event>> events;
  Stream legacy;
};

Handles& handles() {
  static Handles& only = *new Handles;
  return only;
}

// The default streams of a thread, one for each device it used.
thread_local std::map<int, Stream*>* own_streams = nullptr;

Stream* own_stream(Error& error) {
  if (own_streams == nullptr) own_streams = new std::map<int, Stream*>;
  Stream*& own = (*own_streams)[current_device()];
  const bool alive = [&] {
    const std::lock_guard lock(handles().mutex);
    return handles().streams.contains(own);
  }();
  if (!alive) error = create_stream(&own, wire::kPerThread, 0);
  return error == Error::success ? own : nullptr;
}

constexpr std::uintptr_t kLegacyHandle = 1;
constexpr std::uintptr_t kPerThreadHandle = 2;

}  // namespace

Stream* find_stream(Stream* handle, DefaultStream when_null, Error& error) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == kPerThreadHandle || (number == 0 && when_null == DefaultStream::per_thread))
    return own_stream(error);
  Handles& known = handles();
  if (number == 0 || number == kLegacyHandle) return &known.legacy;
  const std::lock_guard lock(known.mutex);
  const auto found = known.streams.find(handle);
  if (found != known.streams.end()) return found->second.get();
  error = Error::invalid_handle;
  return nullptr;
}

Event* find_event(Event* handle) {
  Handles& known = handles();
  const std::lock_guard lock(known.mutex);
  const auto found = known.events.find(handle);
  return found == known.events.end() ? nullptr : found->second.get();
}

Error create_stream(Stream** made, unsigned flags, int priority) {
  if (made == nullptr) return Error::invalid_value;
  wire::StreamCreate::Answer answer{};
  const Error error = call<wire::StreamCreate>({flags, priority}, &answer);
  if (error != Error::success) return error;
  auto stream = std::make_unique<Stream>();
  stream->number = answer.stream;
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority;
  Stream* handle = stream.get();
  {
    Handles& known = handles();
    const std::lock_guard lock(known.mutex);
    known.streams.emplace(handle, std::move(stream));
  }
  *made = handle;
  return Error::success;
}

void forget_streams_and_events(int device) {
  Handles& known = handles();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.streams, [&](const auto& entry) { return entry.second->device == device; });
  std::erase_if(known.events, [&](const auto& entry) { return entry.second->device == device; });
}

Error create_event(Event** made, unsigned flags) {
  if (made == nullptr) return Error::invalid_value;
  wire::EventCreate::Answer answer{};
  const Error error = call<wire::EventCreate>({flags}, &answer);
  if (error != Error::success) return error;
  auto event = std::make_unique<Event>();
  event->number = answer.event;
  event->device = current_device();
  event->flags = flags;
  Event* handle = event.get();
  {
    Handles& known = handles();
    const std::lock_guard lock(known.mutex);
    known.events.emplace(handle, std::move(event));
  }
  *made = handle;
  return Error::success;
}

Error destroy_stream(Stream* handle) {
  Handles& known = handles();
  std::unique_ptr<Stream> gone;
  {
    const std::lock_guard lock(known.mutex);
    auto node = known.streams.extract(handle);
    if (node.empty()) return Error::invalid_handle;
    gone = std::move(node.mapped());
  }
  leave_capture(*gone);
  return call<wire::StreamDestroy>({gone->number});
}

Error destroy_event(Event* handle) {
  Handles& known = handles();
  std::unique_ptr<Event> gone;
  {
    const std::lock_guard lock(known.mutex);
    auto node = known.events.extract(handle);
    if (node.empty()) return Error::invalid_handle;
    gone = std::move(node.mapped());
  }
  return call<wire::EventDestroy>({gone->number});
}

namespace {

Error synchronize_stream(Stream* handle, DefaultStream when_null) {
  return with_stream(handle, when_null, [](Stream& stream) {
    if (stream.capture != nullptr) return forbid_in_capture(stream);
    return call<wire::StreamSynchronize>({stream.number});
  });
}

Error query_stream(Stream* handle, DefaultStream when_null) {
  return with_stream(handle, when_null, [](Stream& stream) {
    if (stream.capture != nullptr) return forbid_in_capture(stream);
    return call<wire::StreamQuery>({stream.number});
  });
}

Error wait_for_event(Stream* handle, Event* event, DefaultStream when_null) {
  Event* found = find_event(event);
  if (found == nullptr) return Error::invalid_handle;
  return with_stream(handle, when_null, [&](Stream& stream) {
    if (stream.capture != nullptr || found->capture != nullptr) return capture_wait(stream, *found);
    return perform(stream, WaitOperation{found}, Wait::no);
  });
}

Error record_event(Event* event, Stream* handle, DefaultStream when_null) {
  Event* found = find_event(event);
  if (found == nullptr) return Error::invalid_handle;
  return with_stream(handle, when_null, [&](Stream& stream) {
    if (stream.capture != nullptr) return capture_record(stream, *found);
    found->capture.reset();
    found->nodes.clear();
    return perform(stream, RecordOperation{found}, Wait::no);
  });
}

Error add_callback(Stream* handle, StreamCallback callback, void* data, DefaultStream when_null) {
  if (callback == nullptr) return Error::invalid_value;
  return with_stream(handle, when_null, [&](Stream& stream) {
    if (stream.capture != nullptr) return forbid_in_capture(stream);
    struct Bound {
      StreamCallback callback;
      Stream* stream;
      void* data;
    };
    auto* bound = new Bound{callback, handle, data};
    return perform(stream,
                   HostOperation{[](void* given) {
                                   const std::unique_ptr<Bound> mine(static_cast<Bound*>(given));
                                   mine->callback(mine->stream, Error::success, mine->data);
                                 },
                                 bound},
                   Wait::no);
  });
}

Error launch_host_function(Stream* handle, HostFunction function, void* data, DefaultStream when_null) {
  if (function == nullptr) return Error::invalid_value;
  return with_stream(handle, when_null, [&](Stream& stream) {
    return enqueue(stream, HostOperation{function, data}, Wait::no);
  });
}

// A property of a stream that is known without the server.
template <class Value, class Read>
Error read_property(Stream* handle, DefaultStream when_null, Value* to, Read read) {
  if (to == nullptr) return Error::invalid_value;
  return with_stream(handle, when_null, [&](Stream& stream) {
    *to = read(stream);
    return Error::success;
  });
}

constexpr unsigned kEventFlags = 1 | 2 | 4;  // blocking synchronisation, no timing, between processes

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaStreamCreate(Stream** stream) {
  return finish(create_stream(stream, 0, 0));
}

Error cudaStreamCreateWithFlags(Stream** stream, unsigned flags) {
  return finish(flags > 1 ? Error::invalid_value : create_stream(stream, flags, 0));
}

Error cudaStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
  return finish(flags > 1 ? Error::invalid_value : create_stream(stream, flags, std::clamp(priority, -5, 0)));
}

Error cudaStreamDestroy(Stream* stream) {
  return finish(destroy_stream(stream));
}

Error cudaStreamSynchronize(Stream* stream) {
  return finish(synchronize_stream(stream, DefaultStream::legacy));
}

Error cudaStreamSynchronize_ptsz(Stream* stream) {
  return finish(synchronize_stream(stream, DefaultStream::per_thread));
}

Error cudaStreamQuery(Stream* stream) {
  return finish(query_stream(stream, DefaultStream::legacy));
}

Error cudaStreamQuery_ptsz(Stream* stream) {
  return finish(query_stream(stream, DefaultStream::per_thread));
}

Error cudaStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return finish(wait_for_event(stream, event, DefaultStream::legacy));
}

Error cudaStreamWaitEvent_ptsz(Stream* stream, Event* event, unsigned) {
  return finish(wait_for_event(stream, event, DefaultStream::per_thread));
}

Error cudaStreamAddCallback(Stream* stream, StreamCallback callback, void* data, unsigned) {
  return finish(add_callback(stream, callback, data, DefaultStream::legacy));
}

Error cudaStreamAddCallback_ptsz(Stream* stream, StreamCallback callback, void* data, unsigned) {
  return finish(add_callback(stream, callback, data, DefaultStream::per_thread));
}

Error cudaLaunchHostFunc(Stream* stream, manyscale::cudart::HostFunction function, void* data) {
  return finish(launch_host_function(stream, function, data, DefaultStream::legacy));
}

Error cudaLaunchHostFunc_ptsz(Stream* stream, manyscale::cudart::HostFunction function, void* data) {
  return finish(launch_host_function(stream, function, data, DefaultStream::per_thread));
}

Error cudaStreamGetFlags(Stream* stream, unsigned* flags) {
  return finish(read_property(stream, DefaultStream::legacy, flags,
                              [](Stream& s) { return s.flags & wire::kNonBlocking; }));
}

Error cudaStreamGetFlags_ptsz(Stream* stream, unsigned* flags) {
  return finish(read_property(stream, DefaultStream::per_thread, flags,
                              [](Stream& s) { return s.flags & wire::kNonBlocking; }));
}

Error cudaStreamGetPriority(Stream* stream, int* priority) {
  return finish(read_property(stream, DefaultStream::legacy, priority, [](Stream& s) { return s.priority; }));
}

Error cudaStreamGetPriority_ptsz(Stream* stream, int* priority) {
  return finish(
      read_property(stream, DefaultStream::per_thread, priority, [](Stream& s) { return s.priority; }));
}

Error cudaStreamGetId(Stream* stream, unsigned long long* id) {
  return finish(read_property(stream, DefaultStream::legacy, id, [](Stream& s) { return s.number + 1ull; }));
}

Error cudaStreamGetId_ptsz(Stream* stream, unsigned long long* id) {
  return finish(
      read_property(stream, DefaultStream::per_thread, id, [](Stream& s) { return s.number + 1ull; }));
}

Error cudaStreamGetDevice(Stream* stream, int* device) {
  return finish(read_property(stream, DefaultStream::legacy, device,
                              [](Stream& s) { return s.number == 0 ? current_device() : s.device; }));
}

Error cudaStreamGetDevice_ptsz(Stream* stream, int* device) {
  return finish(read_property(stream, DefaultStream::per_thread, device, [](Stream& s) { return s.device; }));
}

Error cudaStreamSetAttribute(Stream* stream, unsigned id, const void* value) {
  return finish(with_stream(stream, DefaultStream::legacy, [&](Stream& s) {
    if (value == nullptr) return Error::invalid_value;
    s.attribute.id = id;
    std::copy_n(static_cast<const char*>(value), sizeof s.attribute.value.bytes, s.attribute.value.bytes);
    return Error::success;
  }));
}

Error cudaStreamSetAttribute_ptsz(Stream* stream, unsigned id, const void* value) {
  return cudaStreamSetAttribute(stream, id, value);
}

Error cudaStreamGetAttribute(Stream* stream, unsigned id, void* value) {
  return finish(with_stream(stream, DefaultStream::legacy, [&](Stream& s) {
    if (value == nullptr) return Error::invalid_value;
    const LaunchAttribute none{};
    const LaunchAttribute& set = s.attribute.id == id ? s.attribute : none;
    std::copy_n(set.value.bytes, sizeof set.value.bytes, static_cast<char*>(value));
    return Error::success;
  }));
}

Error cudaStreamGetAttribute_ptsz(Stream* stream, unsigned id, void* value) {
  return cudaStreamGetAttribute(stream, id, value);
}

Error cudaStreamCopyAttributes(Stream* to, Stream* from) {
  return finish(with_stream(to, DefaultStream::legacy, [&](Stream& target) {
    return with_stream(from, DefaultStream::legacy, [&](Stream& source) {
      target.attribute = source.attribute;
      return Error::success;
    });
  }));
}

Error cudaStreamCopyAttributes_ptsz(Stream* to, Stream* from) {
  return cudaStreamCopyAttributes(to, from);
}

Error cudaEventCreate(Event** event) {
  return finish(create_event(event, 0));
}

Error cudaEventCreateWithFlags(Event** event, unsigned flags) {
  return finish((flags & ~kEventFlags) != 0 ? Error::invalid_value : create_event(event, flags));
}

Error cudaEventDestroy(Event* event) {
  return finish(destroy_event(event));
}

Error cudaEventRecord(Event* event, Stream* stream) {
  return finish(record_event(event, stream, DefaultStream::legacy));
}

Error cudaEventRecord_ptsz(Event* event, Stream* stream) {
  return finish(record_event(event, stream, DefaultStream::per_thread));
}

Error cudaEventRecordWithFlags(Event* event, Stream* stream, unsigned) {
  return finish(record_event(event, stream, DefaultStream::legacy));
}

Error cudaEventRecordWithFlags_ptsz(Event* event, Stream* stream, unsigned) {
  return finish(record_event(event, stream, DefaultStream::per_thread));
}

Error cudaEventSynchronize(Event* event) {
  const Event* found = find_event(event);
  if (found == nullptr) return finish(Error::invalid_handle);
  if (found->capture != nullptr) return finish(Error::captured_event);
  return finish(call<wire::EventSynchronize>({found->number}));
}

Error cudaEventQuery(Event* event) {
  const Event* found = find_event(event);
  if (found == nullptr) return finish(Error::invalid_handle);
  if (found->capture != nullptr) return finish(Error::captured_event);
  return finish(call<wire::EventQuery>({found->number}));
}

Error cudaEventElapsedTime(float* milliseconds, Event* begin, Event* end) {
  const Event* first = find_event(begin);
  const Event* last = find_event(end);
  if (milliseconds == nullptr) return finish(Error::invalid_value);
  constexpr unsigned no_timing = 2;
  if (first == nullptr || last == nullptr || ((first->flags | last->flags) & no_timing) != 0)
    return finish(Error::invalid_handle);
  wire::EventElapsed::Answer answer{};
  const Error error = call<wire::EventElapsed>({first->number, last->number}, &answer);
  if (error == Error::success) *milliseconds = static_cast<float>(answer.milliseconds);
  return finish(error);
}

Error cudaEventElapsedTime_v2(float* milliseconds, Event* begin, Event* end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}

}  // extern "C"
