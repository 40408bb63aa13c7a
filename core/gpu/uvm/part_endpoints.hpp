// SPDX-License-Identifier: Apache-2.0
// Ports and timers whose events a part of a component handles instead of the component itself. The part must
// live as long as the component.
#pragma once
#include "engine/port.hpp"

namespace manyscale::gpu {

template <Payload T>
class PartTimer {
 public:
  explicit PartTimer(Component& owner) : owner_(owner) {}

  // Says which method of the part is called: void method(const T&).
  template <auto method>
  void on_expire(typename manyscale::detail::MethodOf<decltype(method)>::type& part) {
    using Part = typename manyscale::detail::MethodOf<decltype(method)>::type;
    endpoint_ = owner_.add_endpoint(&part, [](Component&, void* object, const Event& event) {
      (static_cast<Part*>(object)->*method)(event.load<T>());
    });
  }

  void after(Time delay, const T& payload) {
    owner_.post(owner_.partition_index(), owner_.first_endpoint() + endpoint_, 0, delay, default_priority,
                payload);
  }

 private:
  Component& owner_;
  std::uint32_t endpoint_ = 0;
};

template <class Protocol, int side>
class PartPort final : public Port<Protocol, side> {
 public:
  using Port<Protocol, side>::Port;

  // Says which method of the part takes what arrives: void method(const Received&, std::uint32_t lane).
  template <auto method>
  void on_receive(typename manyscale::detail::MethodOf<decltype(method)>::type& part) {
    using Part = typename manyscale::detail::MethodOf<decltype(method)>::type;
    this->endpoint_ = this->owner().add_endpoint(&part, [](Component&, void* object, const Event& event) {
      (static_cast<Part*>(object)->*method)(event.load<typename Port<Protocol, side>::Received>(),
                                            event.lane);
    });
  }
};

}  // namespace manyscale::gpu
