// SPDX-License-Identifier: Apache-2.0
// What SMs and the memory management unit of a GPU say to each other about pages of managed memory.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::gpu {

// What an SM asks of the memory management unit or tells it. A page that was translated for reading may be
// written through the SM's TLB unless it is read-only; the first such write is told by `used`, since the
// device's page is no longer what the host has.
struct TranslationRequest {
  enum class Kind : std::uint8_t {
    translate,      // where is the page? Answered once by mapped, mapped_read_only or remote
    used,           // accesses through an entry of the TLB: no answer
    remote_read,    // sectors of a line in the host's memory: answered by remote_done
    remote_write,   // the same
    remote_atomic,  // there and back: answered by remote_done
  };

  std::uint64_t address = 0;  // any within the page; of a remote access, the line
  std::uint32_t tag = 0;      // given back with the answer
  std::uint32_t count = 1;    // of `used`: accesses since the entry was filled or the last report
  Kind kind = Kind::translate;
  bool write = false;        // the access writes (atomic operations too)
  std::uint8_t sectors = 0;  // of a remote access: which sectors of the line, a bit each
};

// What the memory management unit answers, or tells unasked.
struct TranslationAnswer {
  enum class Kind : std::uint8_t {
    mapped,            // in the device's memory
    mapped_read_only,  // in the device's memory, a copy: a write has to ask again
    remote,            // in the host's memory: send the access as a remote one, keep it in no TLB
    faulted,           // nack: the page has to come; one of the three above follows for the same tag
    remote_done,       // a remote access is complete
    shootdown,         // forget the translations of `tag` pages from this one on; no answer
    shootdown_all,     // forget all translations; no answer
  };

  std::uint64_t address = 0;  // as in the request; of a shootdown, the first page
  std::uint32_t tag = 0;
  Kind kind = Kind::mapped;
  bool chunk = false;  // of mapped: it holds for all pages of the 64 KiB around
};

struct TranslationProtocol {
  static constexpr std::string_view name = "translation";
  static constexpr std::array<std::string_view, 2> roles{"sm", "gmmu"};
  using First = TranslationRequest;
  using Second = TranslationAnswer;
};

}  // namespace manyscale::gpu
