// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/cross_cta_reads.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "gpu/exec/address_origins.hpp"
#include "gpu/sass/special_registers.hpp"

namespace manyscale::gpu {

namespace {

using sass::Operand;
using sass::OperandKind;
using Value = AddressValue;

constexpr unsigned kGeneral = 255;  // registers without RZ
constexpr unsigned kUniform = 63;
constexpr unsigned kRegisters = kGeneral + kUniform;
constexpr unsigned kMostVisits = 64;  // of a block, on average; the fixpoint is near by then, or given up

// An access of which nothing is known.
constexpr CrossCtaReads::Access kUnknown{0, true, false, 0};

// What a register holds, and which instruction, or which merge of paths, has put it there.
struct Held {
  Value value;
  std::uint32_t definition = 0;
};
using State = std::array<Held, kRegisters>;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The flags of a value whose axes went through an operation that is not one-to-one.
std::uint32_t lossy(std::uint32_t flags, std::uint32_t kind) {
  const std::uint32_t axes = (flags | flags >> 3 | flags >> 6) & 7;
  return (flags & ~Value::kAxes) | axes * kind;
}

// A sum of an index and of a quotient of it may be a remainder: division is not one instruction of SASS.
std::uint32_t summed(std::uint32_t flags) {
  const std::uint32_t axes = flags & (flags / Value::kQuotient) & 7;
  return axes == 0 ? flags : (flags & ~(axes * (Value::kAxis | Value::kQuotient))) | axes * Value::kRemainder;
}

Value special_value(std::int64_t number) {
  using sass::special_register;
  const auto is = [&](unsigned known) { return number == known; };
  for (unsigned axis = 0; axis < 3; ++axis)
    if (is(special_register("SR_CTAID.X") + axis)) return {0, Value::kVarying | Value::kAxis << axis};
  for (unsigned axis = 0; axis < 3; ++axis)
    if (is(special_register("SR_TID.X") + axis)) return {0, Value::kVarying};
  if (is(special_register("SR_LANEID"))) return {0, Value::kVarying};
  return {0, Value::kVarying | Value::kLoaded};
}

unsigned access_bytes(const sass::Instruction& instruction) {
  for (const sass::Modifier modifier : instruction.modifiers) {
    const std::string_view name = sass::name_of(modifier);
    if (name == "U8" || name == "S8") return 1;
    if (name == "U16" || name == "S16") return 2;
    if (name == "64") return 8;
    if (name == "128") return 16;
  }
  return 4;
}

bool has_modifier(const sass::Instruction& instruction, std::string_view wanted) {
  return std::ranges::any_of(instruction.modifiers,
                             [&](sass::Modifier modifier) { return sass::name_of(modifier) == wanted; });
}

class Finder {
 public:
  Finder(const Program& program, const DeviceMemory& memory)
      : program_(program), code_(program.codes.at(program.kernel)), memory_(memory) {}

  CrossCtaReads found() {
    find_accesses();
    if (accesses_.empty()) return {};
    make_blocks();
    if (known_flow_) iterate();
    CrossCtaReads result;
    if (known_flow_) {
      for (std::uint32_t b = 0; b < blocks_.size(); ++b)
        if (blocks_[b].reached) run(b, true);
      relate();
    } else {
      for (const std::uint32_t op : accesses_) (is_store(op) ? stores_ : loads_).insert(kUnknown);
    }
    result.origins = origins_;
    result.loads.assign(loads_.begin(), loads_.end());
    result.stores.assign(stores_.begin(), stores_.end());
    result.surfaces = reads_surface_ && writes_surface_;
    return result;
  }

 private:
  struct Block {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::vector<std::uint32_t> successors;
    bool reached = false;
    bool queued = false;
    State state;  // at its begin
  };
  // Where an access of global memory goes: definitions of its base, and bytes from it on.
  struct Target {
    Value value;
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t> base;
    std::int64_t offset = 0;
    unsigned bytes = 0;
  };

  std::string_view name(std::uint32_t op) const { return sass::name_of(code_.machine[op].opcode); }

  bool is_store(std::uint32_t op) const {
    return is_one_of(name(op), {"STG", "ST", "RED", "REDG", "ATOM", "ATOMG"});
  }

  void find_accesses() {
    for (std::uint32_t op = 0; op < code_.machine.size(); ++op) {
      const std::string_view opcode = name(op);
      reads_surface_ |= opcode == "SULD";
      writes_surface_ |= is_one_of(opcode, {"SUST", "SURED", "SUATOM"});
      const bool loads = is_one_of(opcode, {"LDG", "LD", "LDGSTS"});
      if ((loads && !has_modifier(code_.machine[op], "CONSTANT")) || is_store(op)) accesses_.push_back(op);
      // Bulk copies and accesses of other CTAs' memory: nothing is known of their addresses.
      if (is_one_of(opcode,
                    {"UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG", "LDGMC", "STAS", "REDAS"})) {
        loads_.insert(kUnknown);
        stores_.insert(kUnknown);
        accesses_.push_back(op);
      }
    }
  }

  // --- Flow ---

  void make_blocks() {
    const auto count = static_cast<std::uint32_t>(code_.machine.size());
    std::vector<char> leads(count + 1, 0);
    std::vector<std::uint32_t> returns;  // behind calls
    leads[0] = 1;
    for (std::uint32_t op = 0; op < count; ++op) {
      const Flow flow = code_.ops[op].flow;
      if (flow == Flow::branch || flow == Flow::branch_if || flow == Flow::branch_if_divergent)
        leads[std::min(code_.ops[op].aux, count)] = 1;
      if (flow != Flow::next) leads[op + 1] = 1;
      if (name(op) == "CALL") returns.push_back(op + 1);
      if (flow == Flow::jump && name(op) != "RET") known_flow_ = false;
    }
    std::vector<std::uint32_t> block_of(count + 1, 0);
    for (std::uint32_t op = 0; op < count; ++op) {
      if (leads[op]) blocks_.emplace_back().first = op;
      block_of[op] = static_cast<std::uint32_t>(blocks_.size() - 1);
      blocks_.back().last = op + 1;
    }
    for (Block& block : blocks_) {
      const Op& op = code_.ops[block.last - 1];
      const auto add = [&](std::uint32_t target) {
        if (target < count) block.successors.push_back(block_of[target]);
      };
      const bool branches =
          op.flow == Flow::branch || op.flow == Flow::branch_if || op.flow == Flow::branch_if_divergent;
      if (branches) add(op.aux);
      if (op.flow == Flow::jump)
        for (const std::uint32_t target : returns) add(target);
      const bool always =
          op.flow == Flow::branch || op.flow == Flow::jump || (op.flow == Flow::exit && op.src[0] == kNoSlot);
      if (!always || op.guard != kNoSlot) add(block.last);
    }
  }

  void iterate() {
    std::vector<std::uint32_t> work{0};
    blocks_[0].reached = blocks_[0].queued = true;
    blocks_[0].state[1].value.flags = Value::kElsewhere;  // the stack
    std::size_t visits = 0;
    while (!work.empty()) {
      const std::uint32_t b = work.back();
      work.pop_back();
      blocks_[b].queued = false;
      if (++visits > kMostVisits * blocks_.size()) {
        known_flow_ = false;
        return;
      }
      const Value local = local_;
      run(b, false);
      for (const std::uint32_t next : blocks_[b].successors)
        if (merge(next) && !blocks_[next].queued) {
          blocks_[next].queued = true;
          work.push_back(next);
        }
      // What is stored to local memory may be loaded anywhere.
      if (local_.origins == local.origins && local_.flags == local.flags) continue;
      for (std::uint32_t other = 0; other < blocks_.size(); ++other)
        if (blocks_[other].reached && !blocks_[other].queued) {
          blocks_[other].queued = true;
          work.push_back(other);
        }
    }
  }

  // Merges the state behind a block into the begin of another; whether that has changed.
  bool merge(std::uint32_t to) {
    Block& block = blocks_[to];
    if (!block.reached) {
      block.reached = true;
      block.state = state_;
      return true;
    }
    bool changed = false;
    for (unsigned r = 0; r < kRegisters; ++r) {
      Held& held = block.state[r];
      changed |= held.value.merge(state_[r].value);
      const std::uint32_t joined = 1U << 31 | (to * kRegisters + r + 1);
      if (held.definition == state_[r].definition || held.definition == joined) continue;
      held.definition = joined;
      changed = true;
    }
    return changed;
  }

  // --- Instructions ---

  void run(std::uint32_t b, bool collects) {
    state_ = blocks_[b].state;
    for (std::uint32_t op = blocks_[b].first; op < blocks_[b].last; ++op) {
      if (collects && std::ranges::binary_search(accesses_, op)) collect(op);
      execute(op);
    }
  }

  Held* held(const Operand& operand, unsigned which) {
    const unsigned index = operand.index + which;
    if (operand.kind == OperandKind::uniform) return index < kUniform ? &state_[kGeneral + index] : nullptr;
    return index < kGeneral ? &state_[index] : nullptr;
  }

  static bool is_register(const Operand& operand) {
    return operand.kind == OperandKind::general || operand.kind == OperandKind::uniform;
  }

  Value value_of(const Operand& operand, bool uniform = false) {
    Value value;
    if (is_register(operand)) {
      for (unsigned i = 0; i < operand.count; ++i)
        if (const Held* from = held(operand, i)) value.merge(from->value);
    } else if (operand.kind == OperandKind::special) {
      value = special_value(operand.value);
    } else if (operand.kind == OperandKind::constant) {
      value = constant(operand, uniform);
    }
    return value;
  }

  // A word of a constant bank: a parameter, the address of a variable, or what is the same for all CTAs.
  Value constant(const Operand& operand, bool uniform) {
    const bool plain =
        operand.index == sass::kZeroRegister || (uniform && operand.index == sass::kZeroUniformRegister);
    if (!plain || operand.descriptor != Operand::kNone) return {0, Value::kLoaded | Value::kPointer};
    const ConstantBanks& banks = program_.banks;
    const auto offset = static_cast<std::uint64_t>(operand.value);
    if (operand.bank == 0 && offset >= banks.first_parameter) {
      const std::uint64_t at = (offset - banks.first_parameter) / 8 * 8;
      return {origin({.is_parameter = true, .offset = at, .variable = {}}), 0};
    }
    if (operand.bank == 0) return {};
    if (operand.bank >= ConstantBanks::kCount || operand.bank == ConstantBanks::kVariableBank)
      return {0, Value::kLoaded | Value::kPointer};
    std::uint64_t address = 0;
    const auto& bytes = banks.fixed[operand.bank];
    if (offset / 8 * 8 + 8 <= bytes.size()) std::memcpy(&address, bytes.data() + offset / 8 * 8, 8);
    const DeviceMemory::Range range = memory_.find(address);
    if (range.size == 0) return {};
    return {origin({.is_parameter = false, .offset = 0, .variable = range}), 0};
  }

  std::uint64_t origin(const CrossCtaReads::Origin& wanted) {
    const auto [found, is_new] = indices_.try_emplace(
        {wanted.is_parameter, wanted.is_parameter ? wanted.offset : wanted.variable.begin}, origins_.size());
    if (is_new) origins_.push_back(wanted);
    return std::uint64_t{1} << std::min(found->second, AddressOrigins::kLastBit);
  }

  // What an instruction computes of its operands.
  Value computed(std::uint32_t op) {
    const sass::Instruction& instruction = code_.machine[op];
    const std::string_view opcode = name(op);
    Value value;
    for (unsigned i = 0; i < instruction.operand_count; ++i)
      if (!instruction.operands[i].written) value.merge(value_of(instruction.operands[i], opcode == "ULDC"));
    if (value.origins != 0 && value.flags & Value::kPointer)
      value.flags = (value.flags & ~Value::kPointer) | Value::kAddend;
    if (is_one_of(opcode, {"MOV", "UMOV", "S2R", "S2UR", "CS2R", "SEL", "USEL", "R2UR"})) return value;
    const bool high = has_modifier(instruction, "HI") && !is_one_of(opcode, {"LEA", "ULEA"});
    if (is_one_of(opcode, {"IADD3", "UIADD3", "IADD", "IMAD", "UIMAD", "LEA", "ULEA"}) && !high) {
      value.flags = summed(value.flags);
      return value;
    }
    const bool masks = is_one_of(opcode, {"LOP3", "ULOP3", "SGXT", "USGXT", "BMSK"});
    const bool left = is_one_of(opcode, {"SHF", "USHF"}) && has_modifier(instruction, "L") && !high;
    if (!left) value.flags = lossy(value.flags, masks ? Value::kRemainder : Value::kQuotient);
    return value;
  }

  Value loaded(std::uint32_t op) {
    const std::string_view opcode = name(op);
    if (opcode == "LDL") return {local_.origins, local_.flags | Value::kLoaded};
    return {0,
            Value::kVarying | Value::kLoaded | (access_bytes(code_.machine[op]) >= 8 ? Value::kPointer : 0U)};
  }

  void execute(std::uint32_t op) {
    const sass::Instruction& instruction = code_.machine[op];
    const std::string_view opcode = name(op);
    const bool loads = is_one_of(opcode, {"LDG", "LD", "LDS", "LDL", "LDC", "ULDC", "LDSM", "ATOM", "ATOMG",
                                          "ATOMS", "TEX", "TLD", "TLD4", "SULD", "SUATOM"});
    const bool constant_bank = is_one_of(opcode, {"LDC", "ULDC"});
    const Value result = loads && !constant_bank ? loaded(op) : computed(op);
    if (opcode == "STL")
      for (unsigned i = 0; i < instruction.operand_count; ++i)
        local_.merge(value_of(instruction.operands[i]));
    const bool guarded = code_.ops[op].guard != kNoSlot;
    for (unsigned i = 0; i < instruction.operand_count; ++i) {
      const Operand& operand = instruction.operands[i];
      if (!operand.written || !is_register(operand)) continue;
      for (unsigned which = 0; which < operand.count; ++which) {
        Held* to = held(operand, which);
        if (to == nullptr) continue;
        if (guarded)
          to->value.merge(result);
        else
          to->value = result;
        to->definition = op + 1;
      }
    }
  }

  // --- Accesses ---

  void collect(std::uint32_t op) {
    const sass::Instruction& instruction = code_.machine[op];
    const Operand* address = nullptr;
    for (unsigned i = 0; i < instruction.operand_count; ++i)  // of LDGSTS, the second
      if (instruction.operands[i].kind == OperandKind::address) address = &instruction.operands[i];
    if (address == nullptr) return;
    Target target;
    target.offset = address->value;
    target.bytes = access_bytes(instruction);
    std::array<std::uint32_t, 4> base{};
    for (unsigned i = 0; i < 2; ++i) {
      if (i < address->count && address->index + i < kGeneral) {
        base[i] = state_[address->index + i].definition;
        target.value.merge(state_[address->index + i].value);
      }
      if (address->uniform != Operand::kNone && address->uniform + i < kUniform) {
        const Held& added = state_[kGeneral + address->uniform + i];
        base[2 + i] = added.definition;
        target.value.merge(added.value);
      }
    }
    target.base = {base[0], base[1], base[2], base[3]};
    (is_store(op) ? stored_ : loaded_).push_back(target);
  }

  // Finds the loads that read what the same thread stores.
  void relate() {
    std::multimap<decltype(Target::base), const Target*> by_base;
    for (const Target& store : stored_) {
      by_base.emplace(store.base, &store);
      add(stores_, store, true);
    }
    for (const Target& load : loaded_) {
      const auto [first, last] = by_base.equal_range(load.base);
      const bool own = std::any_of(first, last, [&](const auto& entry) {
        const Target& store = *entry.second;
        return load.offset >= store.offset && load.offset + load.bytes <= store.offset + store.bytes;
      });
      add(loads_, load, own);
    }
  }

  static void add(std::set<CrossCtaReads::Access>& accesses, const Target& target, bool own) {
    const Value& value = target.value;
    const bool unknown = value.origins == 0 || value.flags & Value::kPointer;
    const bool addend = value.flags & Value::kAddend;
    accesses.insert({value.origins, unknown, addend, own ? value.axes() : std::uint8_t{0}});
  }

  const Program& program_;
  const Code& code_;
  const DeviceMemory& memory_;
  std::vector<std::uint32_t> accesses_;  // instructions, ascending
  std::vector<Block> blocks_;
  bool known_flow_ = true;
  State state_;
  Value local_;  // all that is stored to local memory
  std::vector<CrossCtaReads::Origin> origins_;
  std::map<std::pair<bool, std::uint64_t>, std::size_t> indices_;
  std::vector<Target> loaded_;
  std::vector<Target> stored_;
  std::set<CrossCtaReads::Access> loads_;
  std::set<CrossCtaReads::Access> stores_;
  bool reads_surface_ = false;
  bool writes_surface_ = false;
};

}  // namespace

CrossCtaReads find_sass_cross_cta_reads(const Program& program, const DeviceMemory& memory) {
  if (program.codes.empty() || program.codes.at(program.kernel).machine.empty()) return {};
  return Finder(program, memory).found();
}

}  // namespace manyscale::gpu
