// SPDX-License-Identifier: Apache-2.0
// The protocol between SMs and the GMMU: translations of managed memory, remote accesses and TLB shootdowns.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/port.hpp"

namespace manyscale::gpu {

enum class TranslationRequestKind : std::uint8_t {
  translate,      // one response: mapped, mapped_read_only or remote
  used,           // notification of accesses through a TLB entry; no response
  remote_read,    // of sectors of a line in the host's memory; response: remote_done
  remote_write,   // likewise
  remote_atomic,  // crosses the link both ways; response: remote_done
};

// A request or notification of an SM. A page that was translated for reading may be written through the SM's
// TLB unless it is read-only; the first such write is notified by `used`, which sets the page's dirty bit.
struct TranslationRequest {
  std::uint64_t address = 0;  // any within the page; of a remote access, the line
  std::uint32_t tag = 0;      // returned with the response
  std::uint32_t count = 1;    // of `used`: accesses since the fill of the entry or its last notification
  TranslationRequestKind kind = TranslationRequestKind::translate;
  bool write = false;        // the access writes (atomic operations too)
  std::uint8_t sectors = 0;  // of a remote access: which sectors of the line, a bit each
};

enum class TranslationResponseKind : std::uint8_t {
  mapped,            // in the device's memory
  mapped_read_only,  // in the device's memory, a read-only copy: a write needs a new request
  remote,            // in the host's memory: make a remote access, fill no TLB
  faulted,           // nack: a page fault; one of the three above follows for the same tag
  remote_done,       // the remote access is complete
  shootdown,         // invalidate the entries of `tag` pages from this one on
  shootdown_all,     // invalidate all entries
};

// A response or an invalidation of the GMMU.
struct TranslationResponse {
  std::uint64_t address = 0;  // as in the request; of a shootdown, the first page
  std::uint32_t tag = 0;
  TranslationResponseKind kind = TranslationResponseKind::mapped;
  bool chunk = false;  // of mapped: the entry holds for all pages of the 64 KiB around
};

struct TranslationProtocol {
  static constexpr std::string_view name = "translation";
  static constexpr std::array<std::string_view, 2> roles{"sm", "gmmu"};
  using First = TranslationRequest;
  using Second = TranslationResponse;
};

}  // namespace manyscale::gpu
