// SPDX-License-Identifier: Apache-2.0
// The outcome of a branch prediction.
#pragma once
#include <cstdint>

namespace manyscale::cpu {

enum class Prediction : std::uint8_t {
  correct,
  misfetch,  // correct, but the target was not in the buffer: fetch is re-steered when the branch is decoded
  mispredict,  // fetch is redirected when the branch is executed
};

}  // namespace manyscale::cpu
