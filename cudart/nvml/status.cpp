// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace manyscale::nvml {

namespace {

namespace wire = cudart::wire;

constexpr std::uint32_t kLargestReply = 1 << 20;

// A connection to the server; -1 if nobody answers.
int connect_to_server() {
  const char* name = std::getenv("MANYSCALE_CUDA_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view path = name == nullptr ? "" : name;
  if (path.empty() || path.size() > sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // a name that only the kernel knows, not a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made >= 0 && connect(made, reinterpret_cast<const sockaddr*>(&address), size) == 0) return made;
  if (made >= 0) close(made);
  return -1;
}

bool send_all(int to, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t sent = send(to, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int from, void* data, std::size_t bytes) {
  auto* next = static_cast<char*>(data);
  while (bytes != 0) {
    const ssize_t got = recv(from, next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

Outcome exchange(int with, unsigned device, Status& status) {
  using Call = wire::DeviceStatus;
#pragma pack(push, 1)
  struct {
    wire::RequestHeader header;
    Call::Request fields;
  } request{{sizeof(Call::Request), Call::kCall, 0, 0, 0}, {device}};
#pragma pack(pop)
  wire::ReplyHeader reply{};
  if (!send_all(with, &request, sizeof request) || !receive_all(with, &reply, sizeof reply))
    return Outcome::no_server;
  if (reply.status != 0) return Outcome::refused;
  if (reply.bytes < sizeof status.fields || reply.bytes > kLargestReply) return Outcome::no_server;
  std::vector<char> data(reply.bytes);
  if (!receive_all(with, data.data(), data.size())) return Outcome::no_server;
  std::memcpy(&status.fields, data.data(), sizeof status.fields);
  status.processes.resize((data.size() - sizeof status.fields) / sizeof(RunningProcess));
  if (!status.processes.empty())
    std::memcpy(status.processes.data(), data.data() + sizeof status.fields,
                status.processes.size() * sizeof(RunningProcess));
  return Outcome::answered;
}

}  // namespace

Outcome ask(unsigned device, Status& status) {
  const int server = connect_to_server();
  if (server < 0) return Outcome::no_server;
  const Outcome outcome = exchange(server, device, status);
  close(server);
  return outcome;
}

}  // namespace manyscale::nvml
