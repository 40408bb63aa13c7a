// SPDX-License-Identifier: Apache-2.0
// Ports: where links are attached. A port speaks a named protocol in one of its two roles; that is checked
// when ports are connected, and targets are resolved before the run, so sending looks nothing up.
//
// A protocol is a struct:
//   struct Bus {
//     static constexpr std::string_view name = "bus";
//     static constexpr std::array<std::string_view, 2> roles{"requester", "responder"};
//     using First = Request;    // what the first role sends
//     using Second = Response;  // what the second role sends
//   };
#pragma once
#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/component.hpp"

namespace manyscale {

enum class Links { one, optional, many };

// How a payload looks from outside the core: lets a model written in Python speak a protocol of the core.
struct PayloadInfo {
  std::vector<FieldInfo> fields;
  NamedValues (*decode)(const Event&);
  void (*encode)(const NamedValues&, Event&);
};

class PortBase {
 public:
  struct Lane {
    Time latency = 0;
    std::uint32_t partition = 0;
    std::uint32_t target = 0;
    std::uint32_t lane = 0;
    PortBase* peer = nullptr;
  };

  PortBase(Component& owner, std::string name, std::string protocol, std::string role, std::string other_role,
           Links links, std::string doc)
      : owner_(owner),
        name_(std::move(name)),
        protocol_(std::move(protocol)),
        role_(std::move(role)),
        other_role_(std::move(other_role)),
        links_(links),
        doc_(std::move(doc)) {
    owner.add_port(*this);
  }
  PortBase(const PortBase&) = delete;
  PortBase& operator=(const PortBase&) = delete;

  Component& owner() const { return owner_; }
  const std::string& name() const { return name_; }
  std::string path() const { return owner_.name() + "." + name_; }
  const std::string& protocol() const { return protocol_; }
  const std::string& role() const { return role_; }
  const std::string& other_role() const { return other_role_; }
  Links links() const { return links_; }
  const std::string& doc() const { return doc_; }
  std::uint32_t width() const { return static_cast<std::uint32_t>(lanes_.size()); }
  const std::vector<Lane>& lanes() const { return lanes_; }
  const PayloadInfo* sends() const { return sends_; }
  const PayloadInfo* receives() const { return receives_; }

 protected:
  template <Payload T>
  void post(const T& payload, Time delay, std::uint32_t lane, std::uint8_t priority) {
    const Lane& to = lanes_[lane];
    if (delay < 0) [[unlikely]]
      throw SimulationError(path() + " sends with a negative delay");
    owner_.post(to.partition, to.target, to.lane, add_saturating(to.latency, delay), priority, payload);
  }

  const PayloadInfo* sends_ = nullptr;
  const PayloadInfo* receives_ = nullptr;
  std::uint32_t endpoint_ = 0;  // within the owner

 private:
  friend class Simulation;

  Component& owner_;
  std::string name_, protocol_, role_, other_role_;
  Links links_;
  std::string doc_;
  std::vector<Lane> lanes_;
};

inline constexpr std::uint8_t default_priority = 128;

namespace detail {

template <class T>
concept Described = requires { describe<T>::fields; };

template <class T>
const PayloadInfo* payload_info() {
  if constexpr (Described<T>) {
    static const PayloadInfo info{
        field_infos<T>(), [](const Event& event) { return to_values(event.load<T>()); },
        [](const NamedValues& values, Event& event) { event.store(from_values<T>(values)); }};
    return &info;
  } else {
    return nullptr;
  }
}

template <class>
struct MethodOf;
template <class Class, class... Arguments, class Result>
struct MethodOf<Result (Class::*)(Arguments...)> {
  using type = Class;
};

}  // namespace detail

// A port of a model written in C++. `side` 0 plays the protocol's first role, 1 its second.
template <class Protocol, int side>
class Port : public PortBase {
 public:
  using Sent = std::conditional_t<side == 0, typename Protocol::First, typename Protocol::Second>;
  using Received = std::conditional_t<side == 0, typename Protocol::Second, typename Protocol::First>;

  Port(Component& owner, std::string name, std::string doc, Links links = Links::one)
      : PortBase(owner, std::move(name), std::string(Protocol::name), std::string(Protocol::roles[side]),
                 std::string(Protocol::roles[1 - side]), links, std::move(doc)) {
    sends_ = detail::payload_info<Sent>();
    receives_ = detail::payload_info<Received>();
  }

  // Says which method takes what arrives: void method(const Received&, std::uint32_t lane).
  template <auto method>
  void on_receive() {
    using Class = typename detail::MethodOf<decltype(method)>::type;
    endpoint_ = owner().add_endpoint(this, [](Component& component, void*, const Event& event) {
      (static_cast<Class&>(component).*method)(event.load<Received>(), event.lane);
    });
  }

  // Sends over a link: it arrives after the link's latency and the delay given here.
  void send(const Sent& payload, Time delay = 0, std::uint32_t lane = 0,
            std::uint8_t priority = default_priority) {
    post(payload, delay, lane, priority);
  }
};

}  // namespace manyscale
