// SPDX-License-Identifier: Apache-2.0
// A tool for NVTX: keeps the stack of ranges (nvtxRangePush, nvtxRangePop) of each thread, so that launches
// and copies can be attributed to them. Marks, and ranges that begin and end in different threads
// (nvtxRangeStart), are not kept. NVTX loads it by NVTX_INJECTION64_PATH; numbers and layouts are those of
// its header nvtxTypes.h, version 3.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <cwchar>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "open_ranges.hpp"

namespace manyscale::nvtx {

namespace {

constexpr std::size_t kLongestName = 1024;
constexpr std::size_t kDeepest = 64;
constexpr int kNoPush = -2;  // what NVTX returns where no tool keeps ranges

constexpr std::uint32_t kCallbacksTable = 1;
constexpr int kCoreModule = 1, kDomainModule = 5;
constexpr unsigned kPushEx = 8, kPushAscii = 9, kPushWide = 10, kPop = 11;
constexpr unsigned kDomainPushEx = 4, kDomainPop = 5, kRegisterAscii = 10, kRegisterWide = 11;

struct EventAttributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};
enum MessageType : std::int32_t { ascii = 1, wide = 2, registered = 3 };

// Of an extension of NVTX: the functions of its only segment, by number.
struct ExtensionSegment {
  std::size_t number, slots;
  std::intptr_t* functions;
};
struct Extension {
  std::uint16_t version, bytes, module, compatibility;
  std::size_t segments;
  ExtensionSegment* segment;
};
constexpr std::uint16_t kPayloadExtension = 2;
constexpr std::size_t kPushPayload = 3, kPopPayload = 4;

struct Callbacks {
  std::size_t bytes;
  int (*module_functions)(int module, void*** table, unsigned* size);
};

struct Range {
  const void* domain;
  std::uint64_t instance;
  std::string name;
};

struct Stack {
  std::vector<Range> ranges;
  std::vector<OpenRange> open;  // the same for the runtime
  std::size_t beyond = 0;       // ranges that are nested too deeply to be kept
};

thread_local Stack stack;
std::atomic<std::uint64_t> instances{0};

std::string narrow(const wchar_t* text) {
  std::string narrowed;
  for (; *text != L'\0' && narrowed.size() < kLongestName; ++text) {
    const auto code = static_cast<std::uint32_t>(*text);
    if (code < 0x80) {
      narrowed += static_cast<char>(code);
    } else if (code < 0x800) {
      narrowed += static_cast<char>(0xc0 | code >> 6);
      narrowed += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      if (code > 0xffff) narrowed += static_cast<char>(0xf0 | (code >> 18 & 7));
      narrowed += static_cast<char>(code > 0xffff ? 0x80 | (code >> 12 & 0x3f) : 0xe0 | code >> 12);
      narrowed += static_cast<char>(0x80 | (code >> 6 & 0x3f));
      narrowed += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return narrowed;
}

// Registered strings stay for the life of the process: their handles are pointers to them.
const std::string* register_string(std::string text) {
  static std::mutex mutex;
  static auto* const strings = new std::unordered_map<std::string_view, const std::string*>;
  static auto* const kept = new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  if (const auto found = strings->find(text); found != strings->end()) return found->second;
  const std::string& added = kept->emplace_back(std::move(text));
  strings->emplace(added, &added);
  return &added;
}

std::string name_of(const EventAttributes* event) {
  if (event == nullptr || event->message == nullptr) return {};
  switch (event->message_type) {
    case ascii:
      return static_cast<const char*>(event->message);
    case wide:
      return narrow(static_cast<const wchar_t*>(event->message));
    case registered:
      return *static_cast<const std::string*>(event->message);
    default:
      return {};
  }
}

void refresh_open() {
  stack.open.clear();
  for (const Range& range : stack.ranges)
    stack.open.push_back({range.instance, range.name.data(), range.name.size()});
}

int push(const void* domain, std::string name) {
  if (stack.ranges.size() == kDeepest) {
    ++stack.beyond;
    return static_cast<int>(kDeepest + stack.beyond) - 1;
  }
  if (name.size() > kLongestName) name.resize(kLongestName);
  stack.ranges.push_back({domain, ++instances, std::move(name)});
  refresh_open();
  return static_cast<int>(stack.ranges.size()) - 1;
}

// The innermost range of this domain; ranges of other domains inside it stay.
int pop(const void* domain) {
  if (stack.beyond != 0) return static_cast<int>(kDeepest + --stack.beyond);
  for (std::size_t index = stack.ranges.size(); index-- > 0;) {
    if (stack.ranges[index].domain != domain) continue;
    stack.ranges.erase(stack.ranges.begin() + static_cast<std::ptrdiff_t>(index));
    refresh_open();
    return static_cast<int>(index);
  }
  return kNoPush;
}

int push_event(const EventAttributes* event) {
  return push(nullptr, name_of(event));
}

int push_ascii(const char* name) {
  return push(nullptr, name == nullptr ? "" : name);
}

int push_wide(const wchar_t* name) {
  return push(nullptr, name == nullptr ? std::string{} : narrow(name));
}

int pop_default() {
  return pop(nullptr);
}

int push_in_domain(const void* domain, const EventAttributes* event) {
  return push(domain, name_of(event));
}

const void* register_ascii(const void*, const char* text) {
  return register_string(text == nullptr ? "" : text);
}

const void* register_wide(const void*, const wchar_t* text) {
  return register_string(text == nullptr ? std::string{} : narrow(text));
}

// The name of a range with a payload is within a payload of its own layout, which is not read.
int push_payload(const void* domain, const void*, std::size_t) {
  return push(domain, "range with a payload");
}

int pop_payload(const void* domain, const void*, std::size_t) {
  return pop(domain);
}

template <class Function>
void subscribe(void** table, unsigned size, unsigned number, Function function) {
  // The table holds the addresses of NVTX's pointers to functions.
  if (number < size && table[number] != nullptr)
    *static_cast<void**>(table[number]) = reinterpret_cast<void*>(function);
}

}  // namespace

}  // namespace manyscale::nvtx

extern "C" {

int InitializeInjectionNvtx2(const void* (*export_table)(std::uint32_t)) {
  using namespace manyscale::nvtx;
  const auto* callbacks = static_cast<const Callbacks*>(export_table(kCallbacksTable));
  if (callbacks == nullptr || callbacks->bytes < sizeof(Callbacks)) return 0;
  void** table = nullptr;
  unsigned size = 0;
  if (callbacks->module_functions(kCoreModule, &table, &size) == 0 || table == nullptr) return 0;
  subscribe(table, size, kPushEx, push_event);
  subscribe(table, size, kPushAscii, push_ascii);
  subscribe(table, size, kPushWide, push_wide);
  subscribe(table, size, kPop, pop_default);
  if (callbacks->module_functions(kDomainModule, &table, &size) == 0 || table == nullptr) return 1;
  subscribe(table, size, kDomainPushEx, push_in_domain);
  subscribe(table, size, kDomainPop, pop);
  subscribe(table, size, kRegisterAscii, register_ascii);
  subscribe(table, size, kRegisterWide, register_wide);
  return 1;
}

int InitializeInjectionNvtxExtension(manyscale::nvtx::Extension* extension) {
  using namespace manyscale::nvtx;
  if (extension->module != kPayloadExtension || extension->segments == 0) return 0;
  const ExtensionSegment& segment = *extension->segment;
  if (segment.slots <= kPopPayload) return 0;
  segment.functions[kPushPayload] = reinterpret_cast<std::intptr_t>(push_payload);
  segment.functions[kPopPayload] = reinterpret_cast<std::intptr_t>(pop_payload);
  return 1;
}

std::uint64_t manyscale_open_ranges(const manyscale::nvtx::OpenRange** ranges, std::size_t* count) {
  const auto& open = manyscale::nvtx::stack.open;
  *ranges = open.data();
  *count = open.size();
  return open.empty() ? 0 : open.back().instance;
}

}  // extern "C"
