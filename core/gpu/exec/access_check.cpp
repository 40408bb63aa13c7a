// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/access_check.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/hexadecimal.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/location.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;

namespace {

bool has_modifier(const ptx::Module& module, const ptx::Instruction& instruction,
                  std::initializer_list<std::string_view> wanted) {
  return std::ranges::any_of(module.modifiers_of(instruction), [&](std::string_view modifier) {
    return std::ranges::find(wanted, modifier) != wanted.end();
  });
}

// Bytes of the registers that a store takes its values from: those of the first register, or of the type.
unsigned stored_register_bytes(const ptx::Module& module, const ptx::Function& function, const Operand& value,
                               unsigned type_bytes) {
  const std::span<const Operand> values =
      value.kind == OperandKind::vector ? module.children(value) : std::span(&value, 1);
  for (const Operand& element : values)
    if (element.kind == OperandKind::reg)
      return std::max(ptx::size_of(function.registers[element.id].type), 2U);
  return std::max(type_bytes, 2U);
}

AccessTraits machine_traits(const Code& code, const OpInfo& info) {
  AccessTraits traits;
  const sass::Instruction* instruction = machine_instruction_of(code, info);
  if (instruction == nullptr) return traits;
  const std::string_view opcode = sass::name_of(instruction->opcode);
  const auto has = [&](std::string_view wanted) {
    return std::ranges::any_of(instruction->modifiers,
                               [&](sass::Modifier modifier) { return sass::name_of(modifier) == wanted; });
  };
  traits.strong = has("STRONG") || has("MMIO");
  traits.reads = !(opcode.starts_with("ATOM") && has("EXCH"));
  traits.stores_registers = opcode == "ST" || opcode == "STG" || opcode == "STS" || opcode == "STL";
  traits.value_bytes = 4;
  return traits;
}

AccessTraits make_traits(const Warp& warp, const Op& op, const OpInfo& info) {
  AccessTraits traits;
  const Program& program = *warp.launch().program;
  if (program.module == nullptr) return machine_traits(warp.code(), info);
  const ptx::Module& module = *program.module;
  const ptx::Instruction* instruction = instruction_of(program, warp.code(), info);
  if (instruction == nullptr) return traits;
  const auto has = [&](std::initializer_list<std::string_view> wanted) {
    return has_modifier(module, *instruction, wanted);
  };
  traits.strong = has({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"});
  traits.releases = has({"release", "acq_rel"});
  traits.reads = !(instruction->opcode == "atom" && has({"exch"}));
  traits.of_parameter = has({"param", "param::entry", "param::func"});
  traits.stores_registers = instruction->opcode == "st";
  if (traits.stores_registers) {
    const auto index = static_cast<std::size_t>(&warp.code() - program.codes.data());
    const auto& function = module.functions[program.functions[index]];
    traits.value_bytes = static_cast<std::uint8_t>(
        stored_register_bytes(module, function, module.operands_of(*instruction)[1], op.bytes));
  }
  return traits;
}

// One instruction of a warp as the checker sees it.
class AccessCheck {
 public:
  AccessCheck(Warp& warp, const Op& op, unsigned bytes, Does does)
      : warp_(warp),
        op_(op),
        checker_(*warp.worker().checker),
        info_(warp.code().infos[op.info]),
        instruction_(checker_.number_of(info_, [&] { return make_traits(warp, op, info_); })),
        traits_(checker_.instruction(instruction_).traits),
        bytes_(bytes),
        writes_(does != Does::load),
        reads_(does == Does::load || (does == Does::atomic && traits_.reads)),
        strong_(does == Does::atomic || traits_.strong) {
    if (traits_.releases) checker_.barrier();
    checker_.begin_access();
  }

  void look_at(Space space, unsigned lane, std::uint64_t address) {
    switch (space) {
      case Space::shared:
        return look_at_shared(lane, address);
      case Space::local:
        return look_at_local(lane, address);
      case Space::global:
        return look_at_global(lane, address);
      case Space::generic:
        if (in_window(address, kSharedWindow)) return look_at_shared(lane, address - kSharedWindow);
        if (in_window(address, kLocalWindow)) return look_at_local(lane, address - kLocalWindow);
        if (!in_window(address, kParameterWindow)) look_at_global(lane, address);
        return;
      default:  // constants and the kernel's parameters: always there
        return;
    }
  }

 private:
  void look_at_shared(unsigned lane, std::uint64_t offset) {
    const auto thread = static_cast<std::uint16_t>(warp_.thread(lane));
    if (reads_ && checker_.shared_never_written(offset, bytes_))
      uninitialised(Checker::FindingKind::shared, lane, "shared memory",
                    "it was not written since the CTA started", "byte " + std::to_string(offset));
    const Touch touch{instruction_, 0, thread, strong_};
    if (!writes_) {
      const Checker::Conflict conflict = checker_.shared_load(offset, bytes_, touch);
      if (conflict.write.time != 0) race(lane, conflict.write, true, conflict.offset);
      return;
    }
    const Checker::Conflict conflict = checker_.shared_store(offset, bytes_, touch);
    if (conflict.write.time != 0 && !writes_same_value(lane, conflict.write, offset))
      race(lane, conflict.write, true, conflict.offset);
    else if (conflict.read.time != 0)
      race(lane, conflict.read, false, conflict.offset);
  }

  void look_at_local(unsigned lane, std::uint64_t offset) {
    if (traits_.of_parameter) return;
    const unsigned thread = warp_.thread(lane);
    if (reads_ && checker_.local_never_written(thread, offset, bytes_) && !is_parameter(offset))
      uninitialised(Checker::FindingKind::local, lane, "local memory", "the thread has not written it",
                    "byte " + std::to_string(offset));
    if (writes_) checker_.local_store(thread, offset, bytes_);
  }

  void look_at_global(unsigned lane, std::uint64_t address) {
    DeviceMemory& memory = *warp_.launch().memory;
    if (reads_ && memory.never_written(address, bytes_))
      uninitialised(Checker::FindingKind::global, lane, "global memory",
                    "neither the host nor a kernel has written it",
                    std::to_string(bytes_) + " bytes at " + hexadecimal(address) + ": " +
                        memory.describe(address, bytes_));
    if (writes_) memory.mark_written(address, bytes_);
  }

  // Arguments and results of functions are copied by calls, which no instruction of the kernel shows.
  bool is_parameter(std::uint64_t offset) const {
    for (const Frame* frame = &warp_.frame(); frame != nullptr; frame = frame->caller) {
      if (offset < frame->local_base) continue;
      const std::uint64_t inside = offset - frame->local_base;
      const auto among = [&](const std::vector<ParameterLocation>& locations) {
        return std::ranges::any_of(locations, [&](const ParameterLocation& location) {
          return inside + bytes_ > location.offset && inside < location.offset + location.bytes;
        });
      };
      const auto& calls = frame->code->calls;
      return among(frame->code->parameters) || among(frame->code->results) ||
             std::ranges::any_of(
                 calls, [&](const CallSite& call) { return among(call.arguments) || among(call.results); });
    }
    return false;
  }

  // Threads that write what is there already do not disturb each other.
  bool writes_same_value(unsigned lane, const Touch& earlier, std::uint64_t offset) const {
    if (!traits_.stores_registers) return false;
    const bool same_instruction = earlier.time == checker_.now();
    const unsigned other = earlier.thread % kLanes;
    for (unsigned i = 0; i < std::max<unsigned>(op_.count, 1); ++i) {
      const Slot slot = op_.count > 1 ? warp_.listed(op_, i) : op_.src[1];
      const auto* values = warp_.lanes<std::byte>(slot);
      const std::byte* there = same_instruction ? values + std::size_t{other} * traits_.value_bytes
                                                : warp_.cta().shared() + offset + std::size_t{i} * op_.bytes;
      if (std::memcmp(values + std::size_t{lane} * traits_.value_bytes, there, op_.bytes) != 0) return false;
    }
    return !same_instruction || warp_.access->addresses[lane] == warp_.access->addresses[other];
  }

  // --- Words
  // ---------------------------------------------------------------------------------------------------

  std::string instruction_at(const OpInfo& info) const {
    const Program& program = *warp_.launch().program;
    return location_of(program, info) + ": " + instruction_text(program, code_of(program, info), info);
  }

  std::string thread_text(unsigned thread) const {
    return "thread " + in_words(thread_position(warp_.launch(), thread));
  }

  std::string whose() const {
    const Program& program = *warp_.launch().program;
    return "kernel " + program.kernel_name + ", CTA " + in_words(warp_.cta().position());
  }

  // The first line says what is wrong and where: what has the same is not said again.
  void warn(const std::string& headline, const std::string& details) const {
    Worker& worker = warp_.worker();
    const std::string line = headline + "\n";
    if (std::ranges::any_of(worker.warnings, [&](const std::string& old) { return old.starts_with(line); }))
      return;
    worker.warn(line + details);
  }

  void uninitialised(Checker::FindingKind kind, unsigned lane, const std::string& memory,
                     const std::string& why, const std::string& what) const {
    if (!checker_.is_new(kind, &info_, nullptr)) return;
    warn("uninitialised " + memory + " is read: " + why + "\n  at " + instruction_at(info_),
         "  " + whose() + ", " + thread_text(warp_.thread(lane)) + "\n  " + what);
  }

  void race(unsigned lane, const Touch& earlier, bool earlier_wrote, std::uint64_t offset) const {
    const OpInfo* first = checker_.instruction(earlier.instruction).info;
    if (!checker_.is_new(Checker::FindingKind::race, &info_, first)) return;
    const unsigned thread = warp_.thread(lane);
    const std::string byte = "byte " + std::to_string(offset) + " of shared memory";
    if (earlier.time == checker_.now()) {
      warn("race in shared memory: lanes of one instruction write different values to one address\n  at " +
               instruction_at(info_),
           "  " + whose() + ", " + thread_text(earlier.thread) + " and " + thread_text(thread) + ": " + byte);
      return;
    }
    const std::string earlier_line = std::to_string(first->where.line);
    const OpInfo* second = &info_;
    if (second->where.line < first->where.line) std::swap(first, second);
    const bool same_warp = earlier.thread / kLanes == thread / kLanes;
    const std::string verb = writes_ ? reads_ ? "updates" : "writes" : "reads";
    warn("race in shared memory: nothing orders these two\n  at " + instruction_at(*first) + "\n  and " +
             instruction_at(*second),
         "  " + whose() + ", " + thread_text(earlier.thread) + (earlier_wrote ? " writes " : " reads ") +
             byte + " (line " + earlier_line + "), " + thread_text(thread) + " " + verb + " it (line " +
             std::to_string(info_.where.line) + "), without " +
             (same_warp ? "__syncwarp() or a barrier" : "a barrier") + " between");
  }

  Warp& warp_;
  const Op& op_;
  Checker& checker_;
  const OpInfo& info_;
  std::uint32_t instruction_;
  AccessTraits traits_;
  unsigned bytes_;
  bool writes_;
  bool reads_;
  bool strong_;
};

}  // namespace

void check_access(Warp& warp, const Op& op, Space space, unsigned bytes, Does does) {
  AccessCheck check(warp, op, bytes, does);
  for_each_active(warp.access->mask,
                  [&](unsigned lane) { check.look_at(space, lane, warp.access->addresses[lane]); });
}

void check_barrier(Cta& cta, Worker& worker, unsigned barrier) {
  const Program& program = *cta.launch().program;
  const auto info_of = [](const Split& split) {
    const Code& code = *split.frame->code;
    return &code.infos[code.ops[split.pc - 1].info];
  };
  const auto is_aligned = [&](const OpInfo& info) {
    const Code& code = code_of(program, info);
    if (const sass::Instruction* machine = machine_instruction_of(code, info))
      return std::ranges::none_of(machine->modifiers, [](sass::Modifier modifier) {
        return sass::name_of(modifier) == "DEFER_BLOCKING";
      });
    const ptx::Instruction* instruction = instruction_of(program, code, info);
    return instruction != nullptr &&
           (instruction->opcode == "bar" || has_modifier(*program.module, *instruction, {"aligned"}));
  };
  for (const auto& warp : cta.warps()) {
    const OpInfo* first = nullptr;
    for (const Split& split : warp->splits()) {
      if (split.state != Split::State::at_barrier || split.members != barrier) continue;
      const OpInfo* here = info_of(split);
      if (first == nullptr) first = here;
      if (here == first || !(is_aligned(*here) || is_aligned(*first))) continue;
      if (!cta.checker()->is_new(Checker::FindingKind::barrier, first, here)) continue;
      const auto [one, other] = std::minmax(first->where.line, here->where.line);
      worker.warn("divergent barrier: lanes of one warp wait at different instructions for barrier " +
                  std::to_string(barrier) + "\n  at lines " + std::to_string(one) + " and " +
                  std::to_string(other) + " of " + program.module_name);
    }
  }
}

}  // namespace manyscale::gpu
