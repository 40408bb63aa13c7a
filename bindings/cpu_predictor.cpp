// SPDX-License-Identifier: Apache-2.0
// Branch predictors written in Python: plug-ins as those in C++ are, and slow.
#include <nanobind/stl/string.h>

#include "cpu/core/direction_predictor.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::cpu;

namespace {

class PythonPredictor final : public DirectionPlugin<PythonPredictor> {
 public:
  // The caller holds the GIL.
  explicit PythonPredictor(nb::object predictor)
      : predict_(predictor.attr("predict")), update_(predictor.attr("update")) {}
  ~PythonPredictor() override {
    const nb::gil_scoped_acquire held;
    predict_.reset();
    update_.reset();
  }

  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory&) {
    const nb::gil_scoped_acquire held;
    const nb::object predicted = predict_(pc);
    update_(pc, taken);
    const int is_taken = PyObject_IsTrue(predicted.ptr());
    if (is_taken < 0) throw nb::python_error();
    return is_taken != 0;
  }

 private:
  nb::object predict_, update_;
};

}  // namespace

void bind_cpu_predictor(nb::module_& module) {
  module.def(
      "register_branch_predictor",
      [](const std::string& name, const std::string& doc, const nb::callable& factory) {
        // The registry outlives the interpreter, so it keeps no reference that it would have to give back.
        const nb::handle kept = factory.inc_ref();
        Registry<DirectionPredictor>::get().add(
            name, {{doc, {}}, [kept](const BranchSpec&) -> std::unique_ptr<DirectionPredictor> {
                     const nb::gil_scoped_acquire held;
                     return std::make_unique<PythonPredictor>(kept());
                   }});
      },
      nb::arg("name"), nb::arg("doc"), nb::arg("factory"));
}
