// SPDX-License-Identifier: Apache-2.0
// A thread's connection to the server of the simulated GPUs: sends a request, waits for its reply. Data that
// is not in the shared heap passes through staging memory, which both sides map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "abi.hpp"
#include "wire.hpp"

namespace manyscale::cudart {

class Connection {
 public:
  Connection() = default;
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_open() const { return socket_ >= 0; }
  // Connects to the server's socket and says hello. `heap` gets the descriptor of the shared heap, which the
  // caller closes.
  Error open(const std::string& path, int runtime, wire::Hello::Answer& answer, int& heap);
  void close();

  // One call and its answer. `tail` follows the request's fields; `answer_tail` gets what follows the
  // answer's. The connection is closed, and Error::unknown comes back, when the server has gone.
  template <class Call>
  Error call(int device, const typename Call::Request& request, typename Call::Answer* answer,
             std::span<const std::byte> tail = {}, std::vector<std::byte>* answer_tail = nullptr,
             std::uint64_t staged = 0) {
    const std::size_t request_bytes = std::is_empty_v<typename Call::Request> ? 0 : sizeof request;
    const std::size_t answer_bytes =
        std::is_empty_v<typename Call::Answer> ? 0 : sizeof(typename Call::Answer);
    Error error = exchange(Call::kCall, device, &request, request_bytes, tail, staged, -1);
    while (error == Error::again) {
      error = call_host_function(device);
      if (error == Error::success)
        error = exchange(Call::kCall, device, &request, request_bytes, tail, staged, -1);
    }
    if (error != Error::success) return error;
    if (reply_.size() < answer_bytes) return answer_too_short(Call::kCall);
    if (answer != nullptr && answer_bytes != 0) std::memcpy(answer, reply_.data(), answer_bytes);
    if (answer_tail != nullptr)
      answer_tail->assign(reply_.begin() + static_cast<std::ptrdiff_t>(answer_bytes), reply_.end());
    return Error::success;
  }

  // A call that nobody waits for; if the server refuses it, the thread's next call fails.
  template <class Call>
  Error post(int device, const typename Call::Request& request, std::span<const std::byte> tail = {}) {
    static_assert(std::is_empty_v<typename Call::Answer>);
    unanswered_ = true;
    return send_request(Call::kCall | wire::kPosted, device, &request, sizeof request, tail, 0, -1)
               ? Error::success
               : lost();
  }

  // Calls between these two are parts of another; they may be nested.
  void begin_untimed() { ++untimed_; }
  void end_untimed() { --untimed_; }

  // The innermost NVTX range of what follows, by its number; whether it is another one than before.
  bool enter_range(std::uint64_t instance) { return std::exchange(range_, instance) != instance; }

  // Calls were posted since the last reply.
  bool has_posted() const { return unanswered_; }

  // Staging memory of at least so many bytes; null if there is no room for it.
  std::byte* staging(std::size_t bytes);
  // Gives back what a large copy took.
  void trim_staging();

  // The error of the last reply is the device's, not the call's: it stays. Answered once for each reply.
  bool take_sticky() { return (std::exchange(flags_, 0) & wire::kSticky) != 0; }
  // Text that kernels printed and nobody has written yet.
  std::string take_printed();

 private:
  Error exchange(std::uint16_t call, int device, const void* request, std::size_t request_bytes,
                 std::span<const std::byte> tail, std::uint64_t staged, int descriptor,
                 int* received_descriptor = nullptr);
  bool send_request(std::uint16_t call, int device, const void* request, std::size_t request_bytes,
                    std::span<const std::byte> tail, std::uint64_t staged, int descriptor);
  bool send_all(std::span<const std::byte> first, std::span<const std::byte> second,
                std::span<const std::byte> third, int descriptor) const;
  // Says so if the server does not answer a handshake for a while.
  void note_silence() const;
  bool receive_all(void* to, std::size_t bytes, int* descriptor) const;
  // The reply names a function of the host that is due: calls it and says so.
  Error call_host_function(int device);
  Error pause();
  Error lost();
  Error answer_too_short(std::uint16_t call);

  int socket_ = -1;
  int staging_file_ = -1;
  std::byte* staging_ = nullptr;
  std::size_t staging_bytes_ = 0;
  std::uint32_t flags_ = 0;
  int untimed_ = 0;
  int pauses_ = 0;
  bool unanswered_ = false;
  bool await_handshake_ = false;
  std::uint64_t range_ = 0;
  std::uint64_t last_spoken_ = 0;  // when the last reply came or a request was posted, by the host's clock
  std::vector<std::byte> reply_;
  std::string printed_;
};

// The latest simulated time of the host that a reply has told, in nanoseconds.
std::uint64_t simulated_time();
void note_simulated_time(std::uint64_t nanoseconds);

// Says something on standard error, once for each text.
void report_once(const std::string& text);

}  // namespace manyscale::cudart
