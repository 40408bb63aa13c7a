// SPDX-License-Identifier: Apache-2.0
// The models that the core knows by name. A model registers itself from its own folder:
//   const Registered<Phold> registered{"synthetic.phold", "…one sentence…"};
// A model is constructed from its Spec: explicit Phold(const Spec&), with a nested type Spec that has a field
// table.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/component.hpp"
#include "engine/spec.hpp"

namespace manyscale {

struct ModelInfo {
  std::string doc;
  std::vector<FieldInfo> parameters;
  std::unique_ptr<Component> (*create)(const NamedValues& parameters);
};

// All registered models; filled before main, never changed afterwards.
std::map<std::string, ModelInfo, std::less<>>& model_registry();

template <class Model>
struct Registered {
  Registered(std::string name, std::string doc) {
    using Spec = typename Model::Spec;
    model_registry().emplace(std::move(name),
                             ModelInfo{std::move(doc), field_infos<Spec>(),
                                       [](const NamedValues& parameters) -> std::unique_ptr<Component> {
                                         return std::make_unique<Model>(from_values<Spec>(parameters));
                                       }});
  }
};

}  // namespace manyscale
