// SPDX-License-Identifier: Apache-2.0
// A timer: how a component calls itself later, with a payload.
#pragma once
#include "engine/port.hpp"

namespace manyscale {

template <Payload T>
class Timer {
 public:
  explicit Timer(Component& owner) : owner_(owner) {}

  // Says which method is called: void method(const T&).
  template <auto method>
  void on_expire() {
    using Class = typename detail::MethodOf<decltype(method)>::type;
    endpoint_ = owner_.add_endpoint(this, [](Component& component, void*, const Event& event) {
      (static_cast<Class&>(component).*method)(event.load<T>());
    });
  }

  void after(Time delay, const T& payload, std::uint8_t priority = default_priority) {
    owner_.post(owner_.partition_index(), owner_.first_endpoint() + endpoint_, 0, delay, priority, payload);
  }

  // What is still to come does not: a run does not last until then.
  void cancel() { owner_.take_back(owner_.first_endpoint() + endpoint_); }

 private:
  Component& owner_;
  std::uint32_t endpoint_ = 0;
};

}  // namespace manyscale
