// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/cross_cta_reads.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "gpu/exec/address_origins.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;

namespace {

// An address in words that two instructions share if they compute it alike: what its base is computed from,
// and the constant that is added.
struct Expression {
  std::uint64_t number = 0;
  std::int64_t offset = 0;
  std::int64_t step = 0;  // the smallest constant that an index is multiplied with; 0: none

  bool operator==(const Expression&) const = default;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}

std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = mix(hash, static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  return mix(hash, text.size());
}

std::int64_t smaller_step(std::int64_t a, std::int64_t b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

// The expressions of a function's registers. A register that is written more than once is an expression of
// its own, as is a value from memory.
class Expressions {
 public:
  Expressions(const ptx::Module& module, std::uint32_t function)
      : module_(module),
        function_(module.functions[function]),
        definitions_(function_.registers.size()),
        expressions_(function_.registers.size()) {
    for (std::uint32_t i = 0; i < expressions_.size(); ++i) expressions_[i].number = mix(mix(1, function), i);
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
      const ptx::Instruction& instruction = function_.instructions[i];
      const auto operands = module.operands_of(instruction);
      if (!operands.empty() && (!has_no_result(instruction.opcode) || instruction.opcode == "call"))
        define(operands[0], i);
    }
    for (const ptx::Instruction& instruction : function_.instructions) visit(instruction);
  }

  Expression of(const Operand& operand) const {
    switch (operand.kind) {
      case OperandKind::reg:
        return operand.component == 255 ? expressions_[operand.id]
                                        : Expression{mix(expressions_[operand.id].number, operand.component)};
      case OperandKind::address: {
        const auto children = module_.children(operand);
        Expression base = children.empty() ? Expression{} : of(children[0]);
        base.offset += operand.value;
        return base;
      }
      case OperandKind::integer:
        return {2, operand.value};
      case OperandKind::variable:
        return {mix(mix(3, operand.is_local), operand.id), operand.value};
      default: {
        Expression all{mix(mix(mix(4, static_cast<std::uint64_t>(operand.kind)), operand.text),
                           mix(operand.component, static_cast<std::uint64_t>(operand.value)))};
        for (const Operand& child : module_.children(operand)) {
          const Expression part = of(child);
          all.number = mix(mix(all.number, part.number), static_cast<std::uint64_t>(part.offset));
        }
        return all;
      }
    }
  }

  // Whether the base of an address is written again between two instructions.
  bool changes_between(const Operand& address, std::uint32_t first, std::uint32_t last) const {
    const auto children = module_.children(address);
    if (children.empty() || children[0].kind != OperandKind::reg) return false;
    const auto& definitions = definitions_[children[0].id];
    if (definitions.size() < 2) return false;
    if (first > last) std::swap(first, last);
    return std::ranges::any_of(definitions, [&](std::uint32_t at) { return at >= first && at <= last; });
  }

 private:
  void define(const Operand& destination, std::uint32_t at) {
    if (destination.kind == OperandKind::reg) definitions_[destination.id].push_back(at);
    for (const Operand& child : module_.children(destination)) define(child, at);
  }

  bool is_fixed(const Operand& operand) const {
    if (operand.kind == OperandKind::reg && definitions_[operand.id].size() > 1) return false;
    return std::ranges::all_of(module_.children(operand),
                               [&](const Operand& child) { return is_fixed(child); });
  }

  void visit(const ptx::Instruction& instruction) {
    const auto operands = module_.operands_of(instruction);
    if (operands.size() < 2 || operands[0].kind != OperandKind::reg || operands[0].component != 255 ||
        definitions_[operands[0].id].size() != 1 || instruction.guard != ptx::kNone)
      return;
    const std::string_view opcode = instruction.opcode;
    const auto sources = operands.subspan(1);
    Expression& result = expressions_[operands[0].id];
    result.step = step_of(instruction, sources);
    const bool pure = opcode == "mov" || opcode == "add" || opcode == "sub" || opcode == "mul" ||
                      opcode == "mad" || opcode == "shl" || opcode == "cvt" || opcode == "cvta" ||
                      (opcode == "ld" && access_modifiers(module_, instruction).space == Space::param &&
                       function_.is_entry);
    if (!pure || !std::ranges::all_of(sources, [&](const Operand& source) { return is_fixed(source); }))
      return;
    if (opcode == "cvta" || (opcode == "mov" && sources[0].kind == OperandKind::reg)) {
      result = of(sources[0]);
      return;
    }
    if (opcode == "add" && sources[1].kind == OperandKind::integer) {
      result = of(sources[0]);
      result.offset += sources[1].value;
      return;
    }
    std::uint64_t number = mix(5, opcode);
    for (std::string_view modifier : module_.modifiers_of(instruction)) number = mix(number, modifier);
    for (const Operand& source : sources) {
      const Expression part = of(source);
      number = mix(mix(number, part.number), static_cast<std::uint64_t>(part.offset));
    }
    result.number = number;
  }

  std::int64_t step_of(const ptx::Instruction& instruction, std::span<const Operand> sources) const {
    const auto is_integer = [&](std::size_t i) {
      return sources.size() > i && sources[i].kind == OperandKind::integer && sources[i].value > 0;
    };
    if (instruction.opcode == "mul" && is_integer(1)) return sources[1].value;
    if (instruction.opcode == "mad" && is_integer(1))
      return smaller_step(sources[1].value, of(sources[2]).step);
    if (instruction.opcode == "shl" && is_integer(1) && sources[1].value < 32)
      return std::int64_t{1} << sources[1].value;
    if (instruction.opcode == "add" && sources.size() == 2)
      return smaller_step(of(sources[0]).step, of(sources[1]).step);
    return 0;
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  std::vector<std::vector<std::uint32_t>> definitions_;  // instructions, by register
  std::vector<Expression> expressions_;
};

// One instruction's access to global memory.
struct GlobalAccess {
  const Operand* address = nullptr;
  std::uint32_t instruction = 0;
  unsigned bytes = 1;
  Expression expression;
};

class Finder {
 public:
  Finder(const ptx::Module& module, std::uint32_t kernel, const std::set<std::uint32_t>& functions)
      : module_(module), origins_(module, kernel, functions) {
    for (const std::uint32_t id : functions) visit(id);
  }

  CrossCtaReads found(const VariableRange& range) {
    CrossCtaReads result;
    for (const AddressOrigin& origin : origins_.origins())
      result.origins.push_back(
          {origin.is_parameter, origin.offset,
           origin.is_parameter ? DeviceMemory::Range{} : range(origin.function, origin.variable)});
    result.loads.assign(loads_.begin(), loads_.end());
    result.stores.assign(stores_.begin(), stores_.end());
    result.surfaces = reads_surface_ && writes_surface_;
    return result;
  }

 private:
  void visit(std::uint32_t function) {
    const auto& instructions = module_.functions[function].instructions;
    std::vector<GlobalAccess> loads;
    std::vector<GlobalAccess> stores;
    for (std::uint32_t i = 0; i < instructions.size(); ++i) collect(instructions[i], i, loads, stores);
    if (loads.empty() && stores.empty()) return;
    const Expressions expressions(module_, function);
    std::multimap<std::uint64_t, const GlobalAccess*> stored;
    for (GlobalAccess& store : stores) {
      store.expression = expressions.of(*store.address);
      stored.emplace(store.expression.number, &store);
      add(stores_, store, true);
    }
    for (GlobalAccess& load : loads) {
      load.expression = expressions.of(*load.address);
      const auto [first, last] = stored.equal_range(load.expression.number);
      const bool own = std::any_of(first, last, [&](const auto& entry) {
        const GlobalAccess& store = *entry.second;
        return is_same_element(load, store) &&
               !expressions.changes_between(*load.address, load.instruction, store.instruction);
      });
      add(loads_, load, own);
    }
  }

  // Whether a load reads what the store of the same thread writes, or another part of the same structure.
  static bool is_same_element(const GlobalAccess& load, const GlobalAccess& store) {
    const Expression& a = load.expression;
    const Expression& b = store.expression;
    const auto within = [](const Expression& at, unsigned bytes, std::int64_t begin, std::int64_t end) {
      return at.offset >= begin && at.offset + static_cast<std::int64_t>(bytes) <= end;
    };
    return within(a, load.bytes, b.offset, b.offset + static_cast<std::int64_t>(store.bytes)) ||
           (a.step > 0 && within(a, load.bytes, 0, a.step) && within(b, store.bytes, 0, a.step));
  }

  void add(std::set<CrossCtaReads::Access>& accesses, const GlobalAccess& access, bool own) {
    using Value = AddressValue;
    const Value value = origins_.address(*access.address);
    if (value.origins == 0 && value.flags & (Value::kElsewhere | Value::kParameter) &&
        !(value.flags & Value::kPointer))
      return;
    const bool unknown = value.origins == 0 || value.flags & Value::kPointer;
    const bool addend = value.flags & Value::kAddend;
    accesses.insert({value.origins, unknown, addend, own ? value.axes() : std::uint8_t{0}});
  }

  void collect(const ptx::Instruction& instruction, std::uint32_t index, std::vector<GlobalAccess>& loads,
               std::vector<GlobalAccess>& stores) {
    const std::string_view opcode = instruction.opcode;
    const auto operands = module_.operands_of(instruction);
    reads_surface_ |= opcode == "suld";
    writes_surface_ |= opcode == "sust" || opcode == "sured";
    const bool is_load = opcode == "ld" || opcode == "ldu";
    const bool is_store = opcode == "st" || opcode == "red" || opcode == "atom";
    const bool is_matrix = opcode == "wmma";
    const bool is_copy = opcode == "cp" && is_modified_by(module_, instruction, "global");
    if (!is_load && !is_store && !is_matrix && !is_copy) return;
    const AccessModifiers access = access_modifiers(module_, instruction);
    const bool is_global = access.space == Space::global || access.space == Space::generic;
    if ((!is_global && !is_copy) || access.read_only) return;
    const bool stores_matrix = is_matrix && is_modified_by(module_, instruction, "store");
    if (is_matrix && !stores_matrix && !is_modified_by(module_, instruction, "load")) return;
    const std::size_t at = opcode == "st" || opcode == "red" || stores_matrix ? 0 : 1;
    if (operands.size() <= at || operands[at].kind != OperandKind::address) return;
    const unsigned bytes = is_matrix || is_copy ? 1 : std::max(access.bytes(), 1U);
    (is_store || stores_matrix ? stores : loads).push_back({&operands[at], index, bytes, {}});
  }

  const ptx::Module& module_;
  AddressOrigins origins_;
  std::set<CrossCtaReads::Access> loads_;
  std::set<CrossCtaReads::Access> stores_;
  bool reads_surface_ = false;
  bool writes_surface_ = false;
};

// The memory that an access of a launch may touch.
struct Touched {
  std::vector<DeviceMemory::Range> ranges;
  bool unknown = false;
  bool own = false;  // no other CTA has the same addresses
};

Touched touched_by(const CrossCtaReads& reads, const CrossCtaReads::Access& access,
                   const DeviceMemory& memory, std::span<const std::byte> parameters, std::uint8_t axes) {
  Touched touched;
  bool elsewhere = access.unknown_addend;
  for (std::size_t i = 0; i < reads.origins.size(); ++i) {
    if (!(access.origins >> std::min(i, AddressOrigins::kLastBit) & 1)) continue;
    const CrossCtaReads::Origin& origin = reads.origins[i];
    DeviceMemory::Range range = origin.variable;
    std::uint64_t word = 0;
    if (origin.is_parameter && origin.offset + sizeof word <= parameters.size()) {
      std::memcpy(&word, parameters.data() + origin.offset, sizeof word);
      range = memory.find(word);
    }
    if (range.size != 0)
      touched.ranges.push_back(range);
    else
      elsewhere |= !origin.is_parameter || word != 0;  // a null pointer is not used
  }
  touched.unknown = access.unknown || (touched.ranges.empty() && elsewhere);
  touched.own = (access.axes & axes) == axes;
  return touched;
}

bool overlap(const Touched& a, const Touched& b) {
  return std::ranges::any_of(a.ranges, [&](const DeviceMemory::Range& x) {
    return std::ranges::any_of(b.ranges, [&](const DeviceMemory::Range& y) {
      return x.begin < y.begin + y.size && y.begin < x.begin + x.size;
    });
  });
}

}  // namespace

bool CrossCtaReads::possible(const DeviceMemory& memory, std::span<const std::byte> parameters,
                             const std::array<std::uint32_t, 3>& grid) const {
  std::uint8_t axes = 0;
  for (unsigned axis = 0; axis < 3; ++axis) axes |= static_cast<std::uint8_t>((grid[axis] > 1) << axis);
  if (axes == 0) return false;
  if (surfaces) return true;
  if (loads.empty() || stores.empty()) return false;
  std::vector<Touched> stored;
  for (const Access& store : stores) stored.push_back(touched_by(*this, store, memory, parameters, axes));
  return std::ranges::any_of(loads, [&](const Access& load) {
    const Touched loaded = touched_by(*this, load, memory, parameters, axes);
    return std::ranges::any_of(stored, [&](const Touched& store) {
      if (loaded.own && store.own) return false;
      if (loaded.unknown || store.unknown) return true;
      return overlap(loaded, store);
    });
  });
}

CrossCtaReads find_cross_cta_reads(const ptx::Module& module, std::uint32_t kernel,
                                   const std::set<std::uint32_t>& functions, const VariableRange& range) {
  return Finder(module, kernel, functions).found(range);
}

}  // namespace manyscale::gpu
