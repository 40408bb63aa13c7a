// SPDX-License-Identifier: Apache-2.0
// Instructions about the machine rather than the data: sleeping, hints to the scheduler, performance events.
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

void do_nothing(Warp&, const Op&) {}

void decode_nanosleep(Builder& builder) {
  builder.expect_operands(1);
  const Slot duration = builder.source(0, builder.type());
  builder.emit(do_nothing, Class::other, Flow::yield).src[0] = duration;
}

void decode_hint(Builder& builder) {
  builder.ignore({"launch_dependents", "wait", "inc", "dec", "sync", "aligned", "mask"});
  builder.type();
  builder.emit(do_nothing, Class::other);
}

void decode_getctarank(Builder& builder) {
  builder.ignore({"shared::cluster"});
  const Type type = builder.type();
  builder.expect_operands(2);
  const Slot dst = builder.destination(0, Type::b32);
  const Slot address = builder.source(1, type);
  Op& op = builder.emit(
      [](Warp& warp, const Op& op) {
        for_lanes(warp, warp.lanes<std::uint32_t>(op.dst), [](unsigned) { return 0U; });
      },
      Class::other);
  op.dst = dst;
  op.src[0] = address;
}

constexpr Opcode kOpcodes[] = {
    {"nanosleep", decode_nanosleep}, {"pmevent", decode_hint},          {"griddepcontrol", decode_hint},
    {"setmaxnreg", decode_hint},     {"getctarank", decode_getctarank},
};

}  // namespace

std::span<const Opcode> system_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
