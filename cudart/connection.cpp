// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "host_functions.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::size_t kSmallestStaging = std::size_t{1} << 20;
constexpr std::size_t kKeptStaging = std::size_t{64} << 20;
constexpr int kSilenceMilliseconds = 5000;
constexpr std::uint32_t kLargestReply = std::uint32_t{1} << 30;

std::uint64_t host_nanoseconds() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);  // that of the C library may be a simulated one
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// Another one for each program, also if one replaces another in the same process (exec).
std::uint32_t program_number() {
  static const std::uint32_t number = [] {
    std::uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = static_cast<std::uint32_t>(host_nanoseconds());
    return random;
  }();
  return number;
}

}  // namespace

static std::atomic<std::uint64_t> latest_time{0};

std::uint64_t simulated_time() {
  return latest_time;
}

void note_simulated_time(std::uint64_t nanoseconds) {
  std::uint64_t known = latest_time;
  while (known < nanoseconds && !latest_time.compare_exchange_weak(known, nanoseconds)) {
  }
}

void report_once(const std::string& text) {
  // Never destroyed: a program may call us while it ends.
  static auto& mutex = *new std::mutex;
  static auto& reported = *new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!reported.insert(text).second) return;
  }
  const std::string line = "manyscale: " + text + "\n";
  [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, line.data(), line.size());
}

Connection::~Connection() {
  close();
}

void Connection::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  if (staging_ != nullptr) munmap(staging_, staging_bytes_);
  if (staging_file_ >= 0) ::close(staging_file_);
  staging_ = nullptr;
  staging_file_ = -1;
  staging_bytes_ = 0;
}

Error Connection::lost() {
  const bool was_open = socket_ >= 0;
  close();
  if (was_open)
    report_once(
        "the simulator has ended, so the simulated GPUs are gone; see its messages above or in the run "
        "directory");
  return Error::unknown;
}

Error Connection::answer_too_short(std::uint16_t call) {
  report_once(
      "the answer to call " + std::to_string(call) +
      " is too short: the CUDA runtime and the simulator are of different versions, install both again");
  close();
  return Error::unknown;
}

Error Connection::open(const std::string& path, int runtime, wire::Hello::Answer& answer, int& heap) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > sizeof address.sun_path) {
    report_once("MANYSCALE_CUDA_SOCKET is too long for a socket: " + path);
    return Error::no_device;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // a name that only the kernel knows, not a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int connected = -1;
  if (socket_ >= 0) {
    do {
      connected = connect(socket_, reinterpret_cast<const sockaddr*>(&address), size);
    } while (connected != 0 && errno == EINTR);
  }
  if (connected != 0) {
    const int reason = errno;
    close();
    report_once("no simulator answers at " + path + " (" + std::strerror(reason) +
                "); start the program with: manyscale cuda -- PROGRAM");
    return Error::no_device;
  }
  last_spoken_ = host_nanoseconds();
  const wire::Hello::Request request{wire::kVersion, static_cast<std::uint32_t>(getpid()),
                                     static_cast<std::uint32_t>(syscall(SYS_gettid)),
                                     static_cast<std::uint32_t>(runtime), program_number()};
  heap = -1;
  await_handshake_ = true;
  const Error error = exchange(wire::Hello::kCall, 0, &request, sizeof request, {}, 0, -1, &heap);
  await_handshake_ = false;
  if (error != Error::success) return error;
  if (reply_.size() < sizeof answer) return answer_too_short(wire::Hello::kCall);
  std::memcpy(&answer, reply_.data(), sizeof answer);
  return Error::success;
}

// A stream waits for a value in memory, which another thread or process may write meanwhile.
Error Connection::pause() {
  constexpr timespec a_while{0, 100'000};
  constexpr int several_seconds = 50'000;
  syscall(SYS_nanosleep, &a_while, nullptr);  // not one that the program's simulated clock counts
  if (++pauses_ == several_seconds)
    report_once(
        "a call waits for a stream that waits for a value in memory (cuStreamWaitValue32), which nobody has "
        "written for several seconds; waiting for it");
  return Error::success;
}

Error Connection::call_host_function(int device) {
  std::uint64_t number = 0;
  if (reply_.size() < sizeof number) return answer_too_short(wire::HostFunction::kCall);
  std::memcpy(&number, reply_.data(), sizeof number);
  if (number == 0) return pause();
  run_host_function(number);
  const wire::HostFunctionDone::Request done{number};
  return exchange(wire::HostFunctionDone::kCall, device, &done, sizeof done, {}, 0, -1);
}

bool Connection::send_all(std::span<const std::byte> first, std::span<const std::byte> second,
                          std::span<const std::byte> third, int descriptor) const {
  std::array<iovec, 3> parts{};
  std::size_t count = 0;
  std::size_t left = 0;
  for (const auto part : {first, second, third}) {
    if (part.empty()) continue;
    parts[count++] = {const_cast<std::byte*>(part.data()), part.size()};
    left += part.size();
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (left != 0) {
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    left -= static_cast<std::size_t>(sent);
    for (std::size_t gone = static_cast<std::size_t>(sent); gone != 0 && message.msg_iovlen != 0;) {
      iovec& part = *message.msg_iov;
      const std::size_t taken = std::min(gone, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      gone -= taken;
      if (part.iov_len == 0) {
        ++message.msg_iov;
        --message.msg_iovlen;
      }
    }
  }
  return true;
}

void Connection::note_silence() const {
  pollfd answer{socket_, POLLIN, 0};
  if (poll(&answer, 1, kSilenceMilliseconds) == 0)
    report_once(
        "the simulator has not answered for " + std::to_string(kSilenceMilliseconds / 1000) +
        " s: it simulates for another thread or process of the program, or it was stopped; waiting for it");
}

bool Connection::receive_all(void* to, std::size_t bytes, int* descriptor) const {
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    ssize_t got = 0;
    if (descriptor != nullptr) {
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      iovec part{next, bytes};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
      if (got > 0) {
        if (const cmsghdr* header = CMSG_FIRSTHDR(&message);
            header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
          std::memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
      }
    } else {
      got = recv(socket_, next, bytes, 0);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool Connection::send_request(std::uint16_t call, int device, const void* request, std::size_t request_bytes,
                              std::span<const std::byte> tail, std::uint64_t staged, int descriptor) {
  const std::uint64_t now = host_nanoseconds();
  if (untimed_ != 0) call |= wire::kUntimed;
  const wire::RequestHeader header{static_cast<std::uint32_t>(request_bytes + tail.size()), call,
                                   static_cast<std::uint16_t>(device), now - last_spoken_, staged};
  last_spoken_ = now;
  const std::span fields(static_cast<const std::byte*>(request), request_bytes);
  return send_all(std::as_bytes(std::span(&header, 1)), fields, tail, descriptor);
}

Error Connection::exchange(std::uint16_t call, int device, const void* request, std::size_t request_bytes,
                           std::span<const std::byte> tail, std::uint64_t staged, int descriptor,
                           int* received_descriptor) {
  if (socket_ < 0) return Error::unknown;
  wire::ReplyHeader reply{};
  if (!send_request(call, device, request, request_bytes, tail, staged, descriptor)) return lost();
  if (await_handshake_) note_silence();
  if (!receive_all(&reply, sizeof reply, received_descriptor) || reply.bytes > kLargestReply ||
      reply.printed > kLargestReply)
    return lost();
  reply_.resize(reply.bytes);
  if (!receive_all(reply_.data(), reply.bytes, nullptr)) return lost();
  const std::size_t printed = printed_.size();
  printed_.resize(printed + reply.printed);
  if (!receive_all(printed_.data() + printed, reply.printed, nullptr)) return lost();
  flags_ = reply.flags;
  unanswered_ = false;
  note_simulated_time(reply.nanoseconds);
  last_spoken_ = host_nanoseconds();
  return static_cast<Error>(reply.status);
}

std::byte* Connection::staging(std::size_t bytes) {
  if (bytes <= staging_bytes_) return staging_;
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallestStaging));
  const int file = memfd_create("manyscale-staging", MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(size)) == 0)
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) {
    if (file >= 0) ::close(file);
    return nullptr;
  }
  const wire::Staging::Request request{size};
  if (exchange(wire::Staging::kCall, 0, &request, sizeof request, {}, 0, file) != Error::success) {
    munmap(memory, size);
    ::close(file);
    return nullptr;
  }
  if (staging_ != nullptr) munmap(staging_, staging_bytes_);
  if (staging_file_ >= 0) ::close(staging_file_);
  staging_ = static_cast<std::byte*>(memory);
  staging_bytes_ = size;
  staging_file_ = file;
  return staging_;
}

void Connection::trim_staging() {
  if (staging_bytes_ > kKeptStaging)
    fallocate(staging_file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              static_cast<off_t>(staging_bytes_));
}

std::string Connection::take_printed() {
  return std::exchange(printed_, {});
}

}  // namespace manyscale::cudart
