// SPDX-License-Identifier: Apache-2.0
// Descriptions of networks, from Python's values; for those who simulate on one.
#pragma once
#include <nanobind/ndarray.h>

#include <vector>

#include "module.hpp"
#include "network/network_spec.hpp"

template <class T, class Shape = nb::ndim<1>>
using In = nb::ndarray<const T, Shape, nb::c_contig, nb::device::cpu>;

template <class T>
std::vector<T> vector_of(const nb::handle& object) {
  const auto array = nb::cast<In<T>>(object);
  return {array.data(), array.data() + array.size()};
}

manyscale::network::NetworkDescription read_network(const nb::dict& dict);
