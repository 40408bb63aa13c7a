// SPDX-License-Identifier: Apache-2.0
#include "engine/registry.hpp"

namespace manyscale {

std::map<std::string, ModelInfo, std::less<>>& model_registry() {
  static std::map<std::string, ModelInfo, std::less<>> registry;
  return registry;
}

}  // namespace manyscale
