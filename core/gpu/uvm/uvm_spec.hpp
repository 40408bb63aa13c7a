// SPDX-License-Identifier: Apache-2.0
// Parameters of unified memory: those of its GMMU and of its UVM driver together, since a machine describes
// both in one table. None has a default.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>

#include "engine/spec.hpp"
#include "gpu/uvm/gmmu_spec.hpp"
#include "gpu/uvm/uvm_driver_spec.hpp"

namespace manyscale::gpu {

struct UnifiedMemorySpec : GmmuSpec, UvmDriverSpec {
  std::string kind = "discrete";
  std::int64_t log_rows = 0;
};

namespace detail {

template <class Part, class Value>
constexpr Field<UnifiedMemorySpec, Value> as_field_of_whole(const Field<Part, Value>& field) {
  return {field.name, field.member, field.unit, field.doc, field.minimum, field.maximum};
}

template <class Part>
constexpr auto fields_of_part() {
  return std::apply([](const auto&... field) { return std::tuple{as_field_of_whole(field)...}; },
                    describe<Part>::fields);
}

}  // namespace detail

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::UnifiedMemorySpec> {
  using S = gpu::UnifiedMemorySpec;
  static constexpr bool required = true;
  static constexpr auto fields = std::tuple_cat(
      std::tuple{Field<S, std::string>{
          "kind", &S::kind, Unit::none,
          "discrete: pages migrate between two memories; shared: host and device have one memory"}},
      gpu::detail::fields_of_part<gpu::GmmuSpec>(), gpu::detail::fields_of_part<gpu::UvmDriverSpec>(),
      std::tuple{Field<S, std::int64_t>{"log_rows", &S::log_rows, Unit::count,
                                        "rows of the page log; 0: none is kept", 0, 1e8}});
};

}  // namespace manyscale
