// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/lower.hpp"

#include <algorithm>
#include <string>

#include "gpu/exec/flow_graph.hpp"
#include "gpu/exec/place.hpp"
#include "gpu/lower/macros.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::Type;

namespace {

constexpr std::uint64_t kInstructionBytes = 16;
constexpr unsigned kPredicates = 7;

Kind kind_of(char letter) {
  switch (letter | 0x20) {
    case 'l':
      return Kind::logic;
    case 'm':
      return Kind::multiply_add;
    case 'w':
      return Kind::multiply_wide;
    case 'f':
      return Kind::fp32;
    case 'd':
      return Kind::fp64;
    case 'h':
      return Kind::fp16;
    case 's':
      return Kind::special_function;
    case 'c':
      return Kind::convert;
    case 'b':
      return Kind::branch;
    default:
      return Kind::integer;
  }
}

// Lowers one function. A register here is an element of a PTX register: 32 bits, or 64, or a predicate.
class FunctionLowering {
 public:
  FunctionLowering(const Program& program, const Code& code, const ptx::Function& function, bool is_kernel)
      : module_(*program.module), code_(code), function_(function), is_kernel_(is_kernel) {}

  MachineFunction lower(std::uint32_t most_registers) {
    count_uses();
    find_free_operations();
    allocate(most_registers);
    emit_all();
    return std::move(result_);
  }

 private:
  std::span<const std::uint32_t> reads(const OpInfo& info) const {
    return std::span(code_.registers).subspan(info.first_read, info.reads);
  }
  std::span<const std::uint32_t> writes(const OpInfo& info) const {
    return std::span(code_.registers).subspan(info.first_write, info.writes);
  }
  const ptx::Instruction* instruction(const Op& op) const {
    const OpInfo& info = code_.infos[op.info];
    return info.instruction == ptx::kNone ? nullptr : &function_.instructions[info.instruction];
  }
  bool has(const ptx::Instruction& instruction, std::string_view modifier) const {
    return std::ranges::find(module_.modifiers_of(instruction), modifier) !=
           module_.modifiers_of(instruction).end();
  }
  Type type_of(const ptx::Instruction& instruction, unsigned index = 0) const {
    for (std::string_view modifier : module_.modifiers_of(instruction)) {
      const Type type = ptx::type_named(modifier);
      if (type != Type::none && index-- == 0) return type;
    }
    return Type::none;
  }

  void count_uses() {
    for (const OpInfo& info : code_.infos) {
      for (std::uint32_t id : reads(info)) at(read_count_, id)++;
      for (std::uint32_t id : writes(info)) at(write_count_, id)++;
    }
  }
  std::uint32_t& at(std::vector<std::uint32_t>& counts, std::uint32_t id) {
    if (counts.size() <= id) counts.resize(id + 1, 0);
    return counts[id];
  }
  std::uint32_t get(const std::vector<std::uint32_t>& counts, std::uint32_t id) const {
    return id < counts.size() ? counts[id] : 0;
  }

  // What a register stands for once moves and constants are gone.
  struct Meaning {
    bool constant = false;                    // an immediate or a kernel's parameter: no register
    bool parameter = false;                   // from the constant bank
    std::uint32_t alias = ~std::uint32_t{0};  // another register that holds the same
  };

  // Operations for which hardware executes nothing: their effect is part of another instruction.
  void find_free_operations() {
    free_.assign(code_.infos.size(), 0);
    meanings_.resize(std::max(read_count_.size(), write_count_.size()));
    std::vector<std::uint32_t> address_only(meanings_.size(), 0);  // uses as the base of an address
    for (const Op& op : code_.ops) {
      if (op.flow == Flow::join) continue;
      const OpInfo& info = code_.infos[op.info];
      const bool memory = info.kind == Class::load || info.kind == Class::store || info.kind == Class::atomic;
      if (memory && info.reads != 0 && op.src[0] != kNoSlot) address_only[reads(info)[0]]++;
    }
    for (const Op& op : code_.ops) {
      if (op.flow == Flow::join) continue;
      const OpInfo& info = code_.infos[op.info];
      const ptx::Instruction* text = instruction(op);
      if (text == nullptr || info.writes == 0) continue;
      const std::uint32_t to = writes(info)[0];
      const bool once = info.writes == 1 && get(write_count_, to) == 1 && op.guard == kNoSlot;
      const bool dead = once && get(read_count_, to) == 0;
      const bool pure = info.kind != Class::load && info.kind != Class::atomic && info.kind != Class::store &&
                        info.kind != Class::texture && info.kind != Class::warp && op.flow == Flow::next &&
                        info.kind != Class::other;
      if (dead && pure) {
        free_[op.info] = 1;
        continue;
      }
      if (!once) continue;
      Meaning& meaning = meanings_[to];
      if (text->opcode == "ld" && has(*text, "param") && info.reads == 0 && is_kernel_) {
        meaning.constant = meaning.parameter = true;
        free_[op.info] = 1;
      } else if (text->opcode == "mov" || text->opcode == "cvta") {
        if (is_special(*text)) continue;
        if (info.reads == 0) {
          meaning.constant = true;
          free_[op.info] = 1;
        } else if (info.reads == 1 && get(write_count_, reads(info)[0]) <= 1) {
          meaning.alias = reads(info)[0];
          free_[op.info] = 1;
        }
      } else if (text->opcode == "cvt" && is_extension_of_unsigned(*text) && info.reads == 1) {
        meaning.alias = reads(info)[0];
        free_[op.info] = 1;
      } else if (text->opcode == "mul" && may_fuse(*text) && get(read_count_, to) == 1) {
        products_.push_back(to);  // part of the addition that uses it, if there is one
      } else if (text->opcode == "add" && ptx::size_of(type_of(*text)) == 8 && info.reads == 1 &&
                 address_only[to] == get(read_count_, to)) {
        // A constant added to an address is in the addressing mode.
        meaning.alias = reads(info)[0];
        free_[op.info] = 1;
      }
    }
    fuse_products();
  }

  // IMAD.WIDE adds 64 bits to a product; FFMA and DFMA take in a product that the program did not ask to
  // round itself.
  bool may_fuse(const ptx::Instruction& text) const {
    const Type type = type_of(text);
    if (type == Type::f32 || type == Type::f64)
      return !has(text, "rn") && !has(text, "rz") && !has(text, "rm") && !has(text, "rp") &&
             !has(text, "sat");
    return text.opcode == "mul" ? has(text, "wide") : text.opcode == "add" && ptx::size_of(type) == 8;
  }

  bool is_special(const ptx::Instruction& text) const {
    const auto operands = module_.operands_of(text);
    return operands.size() > 1 && operands[1].kind == Operand::Kind::special;
  }

  // Zero-extension gives a register pair whose upper half is the zero register.
  bool is_extension_of_unsigned(const ptx::Instruction& text) const {
    const Type to = type_of(text, 0);
    const Type from = type_of(text, 1);
    if (ptx::is_float(to) || ptx::is_float(from)) return false;
    const bool narrows = ptx::size_of(to) <= ptx::size_of(from) && ptx::size_of(to) >= 4;
    return narrows || (ptx::size_of(from) == 4 && !ptx::is_signed(from) && ptx::size_of(to) == 8);
  }

  void fuse_products() {
    for (const Op& op : code_.ops) {
      if (op.flow == Flow::join || op.guard != kNoSlot) continue;
      const OpInfo& info = code_.infos[op.info];
      const ptx::Instruction* text = instruction(op);
      if (text == nullptr || (text->opcode != "add" && text->opcode != "sub") || !may_fuse(*text)) continue;
      for (std::uint32_t id : reads(info)) {
        if (std::ranges::find(products_, id) == products_.end()) continue;
        fused_add_.push_back(op.info);
        fused_product_.push_back(id);
        break;
      }
    }
    for (const Op& op : code_.ops) {
      if (op.flow == Flow::join) continue;
      const OpInfo& info = code_.infos[op.info];
      if (info.writes == 1 && !free_[op.info] &&
          std::ranges::find(fused_product_, writes(info)[0]) != fused_product_.end() &&
          instruction(op)->opcode == "mul") {
        free_[op.info] = 1;
        product_sources_.push_back({writes(info)[0], {reads(info).begin(), reads(info).end()}});
      }
    }
  }

  std::uint32_t resolve(std::uint32_t id) const {
    for (unsigned depth = 0; depth < 64 && meanings_[id].alias != ~std::uint32_t{0}; ++depth)
      id = meanings_[id].alias;
    return id;
  }

  // --- Registers
  // ---------------------------------------------------------------------------------------------------
  void allocate(std::uint32_t most_registers) {
    // Element ids beyond the declared ones are the decoder's own; they have no size here and count as 32
    // bits.
    std::vector<std::uint8_t> bytes;
    for (const ptx::Register& r : function_.registers)
      bytes.insert(bytes.end(), std::max<unsigned>(r.elements, 1),
                   static_cast<std::uint8_t>(r.type == Type::pred ? 0 : ptx::size_of(r.type)));
    bytes.resize(std::max(bytes.size(), meanings_.size()), 4);
    RegisterUses uses;
    uses.first.push_back(0);
    std::vector<Op> ops;
    for (const Op& op : code_.ops) {
      ops.push_back(op);
      if (op.flow != Flow::join) {
        const OpInfo& info = code_.infos[op.info];
        for (std::uint32_t id : reads(info)) uses.registers.push_back(resolve(id));
        uses.first.push_back(static_cast<std::uint32_t>(uses.registers.size()));
        for (std::uint32_t id : writes(info))
          if (meanings_[id].alias == ~std::uint32_t{0}) uses.registers.push_back(id);
      } else {
        uses.first.push_back(static_cast<std::uint32_t>(uses.registers.size()));
      }
      uses.first.push_back(static_cast<std::uint32_t>(uses.registers.size()));
    }
    const std::vector<Block> blocks = make_blocks(ops, code_.branch_tables);
    std::vector<LiveRange> ranges = live_ranges(ops, blocks, uses, bytes.size());
    places_.assign(bytes.size(), Place{});
    std::vector<std::uint32_t> order;
    for (std::uint32_t id = 0; id < bytes.size(); ++id) {
      const bool constant = id < meanings_.size() && meanings_[id].constant;
      if (ranges[id].first <= ranges[id].last && !constant) order.push_back(id);
    }
    std::ranges::sort(order, {}, [&](std::uint32_t id) { return std::pair(ranges[id].first, id); });
    std::vector<std::uint32_t> free_at(most_registers,
                                       0);  // by register: the operation from which on it is free
    std::vector<std::uint32_t> predicate_free(kPredicates, 0);
    std::uint32_t used = 0;
    for (std::uint32_t id : order) {
      const unsigned words = bytes[id] == 0 ? 0 : std::max(1U, bytes[id] / 4U);
      if (words == 0) {
        const auto best = std::ranges::min_element(predicate_free);
        places_[id] = {static_cast<std::uint8_t>(best - predicate_free.begin()), 0, true};
        *best = ranges[id].last;
        continue;
      }
      std::uint32_t at = 0;
      for (; at + words <= most_registers; at += words) {
        bool free = true;
        for (unsigned i = 0; i < words; ++i) free &= free_at[at + i] <= ranges[id].first;
        if (free) break;
      }
      if (at + words > most_registers) {
        ++result_.spilled;
        at = most_registers - words;
      }
      for (unsigned i = 0; i < words; ++i) free_at[at + i] = ranges[id].last;
      places_[id] = {static_cast<std::uint8_t>(at), static_cast<std::uint8_t>(words), true};
      used = std::max(used, at + words);
    }
    result_.used_registers = used;
  }

  // --- Instructions
  // ------------------------------------------------------------------------------------------------
  struct Built {
    MachineInstruction instruction;
    std::vector<std::uint8_t> reads;
    std::vector<std::uint8_t> writes;
  };

  void add_read(Built& built, std::uint32_t id) const {
    id = resolve(id);
    if (meanings_[id].constant) {
      built.instruction.reads_constant |= meanings_[id].parameter;
      return;
    }
    const Place& place = places_[id];
    if (!place.used) return;
    if (place.words == 0) built.instruction.reads_predicates |= static_cast<std::uint8_t>(1U << place.first);
    for (unsigned i = 0; i < place.words; ++i)
      built.reads.push_back(static_cast<std::uint8_t>(place.first + i));
  }
  void add_write(Built& built, std::uint32_t id) const {
    const Place& place = places_[id];
    if (!place.used) return;
    if (place.words == 0) built.instruction.writes_predicates |= static_cast<std::uint8_t>(1U << place.first);
    for (unsigned i = 0; i < place.words; ++i)
      built.writes.push_back(static_cast<std::uint8_t>(place.first + i));
  }

  void push(const Built& built, bool executes) {
    MachineInstruction instruction = built.instruction;
    instruction.executes = executes;
    instruction.first = static_cast<std::uint32_t>(result_.registers.size());
    instruction.reads = static_cast<std::uint8_t>(std::min<std::size_t>(built.reads.size(), 255));
    instruction.writes = static_cast<std::uint8_t>(std::min<std::size_t>(built.writes.size(), 255));
    result_.registers.insert(result_.registers.end(), built.reads.begin(),
                             built.reads.begin() + instruction.reads);
    result_.registers.insert(result_.registers.end(), built.writes.begin(),
                             built.writes.begin() + instruction.writes);
    result_.instructions.push_back(instruction);
  }

  void emit_all() {
    for (const Op& op : code_.ops) {
      result_.first.push_back(static_cast<std::uint32_t>(result_.instructions.size()));
      if (op.flow != Flow::join) emit(op);
    }
    result_.first.push_back(static_cast<std::uint32_t>(result_.instructions.size()));
  }

  void emit(const Op& op) {
    const OpInfo& info = code_.infos[op.info];
    if (free_[op.info]) return;
    const ptx::Instruction* text = instruction(op);
    Built built;
    for (std::uint32_t id : reads(info)) {
      const auto product = std::ranges::find(product_sources_, id, &Product::result);
      if (product != product_sources_.end())
        for (std::uint32_t source : product->sources) add_read(built, source);
      else
        add_read(built, id);
    }
    for (std::uint32_t id : writes(info)) add_write(built, id);
    if (op.guard != kNoSlot) built.instruction.guards = built.instruction.reads_predicates;
    const std::string sequence = sequence_of(op, info, text);
    // The first reads what the instruction reads; the result is there behind the last. In between, each that
    // needs the one before it waits for the result's registers.
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      Built step = built;
      step.instruction.kind =
          memory_kind_ != Kind::count && i + 1 == sequence.size() ? memory_kind_ : kind_of(sequence[i]);
      const bool chained = i != 0 && sequence[i] < 'a';
      if (i != 0 && !(memory_kind_ != Kind::count && i + 1 == sequence.size())) {
        step.reads.clear();
        if (chained) step.reads = built.writes;
      }
      if (i + 1 != sequence.size() && !chained && i != 0) step.writes.clear();
      push(step, i == 0);
    }
  }

  // The letters of an operation; sets memory_kind_ if its last one is not among them.
  std::string sequence_of(const Op& op, const OpInfo& info, const ptx::Instruction* text) {
    memory_kind_ = Kind::count;
    auto alone = [&](Kind kind) {
      memory_kind_ = kind;
      return std::string("I");
    };
    if (text == nullptr)
      return alone(op.flow == Flow::ret ? (is_kernel_ ? Kind::exit : Kind::branch) : Kind::other);
    const Type type = type_of(*text);
    for (const Macro& macro : kMacros)
      if (fits(macro, *text, type)) return std::string(macro.sequence);
    const bool wide = ptx::size_of(type) == 8;
    switch (info.kind) {
      case Class::load:
      case Class::store:
      case Class::atomic:
        return alone(memory_kind(info, *text));
      case Class::texture:
        return alone(Kind::texture);
      case Class::warp:
        return alone(text->opcode == "shfl" ? Kind::shuffle : Kind::vote);
      case Class::barrier:
        return alone(Kind::barrier);
      case Class::fence:
        return alone(Kind::fence);
      case Class::branch:
        return alone(op.flow == Flow::exit || (op.flow == Flow::ret && is_kernel_) ? Kind::exit
                                                                                   : Kind::branch);
      case Class::tensor:
        return tensor_sequence(*text);
      case Class::fp64:
        return "D";
      case Class::fp32:
        return "F";
      case Class::fp16:
        return "H";
      case Class::special_function:
        return "S";
      case Class::convert:
        return convert_sequence(*text);
      case Class::move:
        if (is_special(*text)) return alone(Kind::move_special);
        return wide ? "Ii" : "I";
      case Class::multiply:
        return has(*text, "wide") || has(*text, "hi") || wide ? "W" : "M";
      case Class::logic:
        return wide ? "Ll" : "L";
      case Class::integer:
      case Class::compare:
        if (type == Type::f64) return "D";
        if (type == Type::f32 && info.kind != Class::compare) return "F";
        if (std::ranges::find(fused_add_, op.info) != fused_add_.end()) return "W";
        return wide ? "II" : "I";
      default:
        return alone(Kind::other);
    }
  }

  bool fits(const Macro& macro, const ptx::Instruction& text, Type type) const {
    const std::size_t dot = macro.opcode.find('.');
    if (text.opcode != macro.opcode.substr(0, dot)) return false;
    if (dot != std::string_view::npos && !has(text, macro.opcode.substr(dot + 1))) return false;
    if (!macro.type.empty() && ptx::name_of(type) != macro.type) return false;
    return macro.rounding.empty() || has(text, macro.rounding);
  }

  Kind memory_kind(const OpInfo& info, const ptx::Instruction& text) const {
    const bool shared = has(text, "shared") || has(text, "shared::cta");
    if (info.kind == Class::atomic) {
      if (shared) return Kind::atomic_shared;
      const bool used = info.writes != 0 && get(read_count_, writes(info)[0]) != 0;
      return text.opcode == "red" || !used ? Kind::reduce_global : Kind::atomic_global;
    }
    const bool load = info.kind == Class::load;
    if (shared || text.opcode == "ldmatrix" || text.opcode == "stmatrix")
      return load ? Kind::load_shared : Kind::store_shared;
    if (has(text, "local") || has(text, "param")) return load ? Kind::load_local : Kind::store_local;
    if (load && has(text, "const")) return Kind::load_constant;
    return load ? Kind::load_global : Kind::store_global;
  }

  // A conversion between integers is a shift or a permutation; with floats it takes the slow lanes.
  std::string convert_sequence(const ptx::Instruction& text) const {
    const Type to = type_of(text, 0);
    const Type from = type_of(text, 1);
    const bool floats = ptx::is_float(to) || ptx::is_float(from);
    if (!floats) return "I";
    if (to == Type::f32 && from == Type::f32) return has(text, "sat") || has(text, "ftz") ? "F" : "C";
    if (to == Type::f64 || from == Type::f64) return "C";
    if (to == Type::f16x2 || to == Type::bf16x2 || to == Type::tf32) return "F";
    if (from == Type::f16 && to == Type::f32) return "H";
    return "C";
  }

  // Steps of a tensor core: a Volta HMMA does 8 x 8 x 4 for the warp's four quads in two steps or four.
  std::string tensor_sequence(const ptx::Instruction& text) {
    if (text.opcode == "wmma" && has(text, "load")) memory_kind_ = Kind::load_global;
    if (text.opcode == "wmma" && has(text, "store")) memory_kind_ = Kind::store_global;
    if (text.opcode == "ldmatrix") memory_kind_ = Kind::load_shared;
    if (text.opcode == "stmatrix") memory_kind_ = Kind::store_shared;
    if (memory_kind_ != Kind::count) {
      if (has(text, "shared") || has(text, "shared::cta"))
        memory_kind_ = memory_kind_ == Kind::load_global ? Kind::load_shared : Kind::store_shared;
      return "I";
    }
    memory_kind_ = has(text, "f64")   ? Kind::tensor_double
                   : has(text, "s32") ? Kind::tensor_integer
                                      : Kind::tensor_half;
    unsigned m = 8;
    unsigned n = 8;
    unsigned k = 4;
    for (std::string_view modifier : module_.modifiers_of(text)) read_shape(modifier, m, n, k);
    const unsigned steps = std::max(1U, m * n * k / 256);
    return std::string(steps, 'i');
  }

  static void read_shape(std::string_view modifier, unsigned& m, unsigned& n, unsigned& k) {
    unsigned values[3] = {0, 0, 0};
    int index = -1;
    for (char c : modifier) {
      if (c == 'm' || c == 'n' || c == 'k') {
        index = c == 'm' ? 0 : c == 'n' ? 1 : 2;
      } else if (c >= '0' && c <= '9' && index >= 0) {
        values[index] = values[index] * 10 + static_cast<unsigned>(c - '0');
      } else {
        return;
      }
    }
    if (values[0] == 0 || values[1] == 0 || values[2] == 0) return;
    m = values[0];
    n = values[1];
    k = values[2];
  }

  struct Place {
    std::uint8_t first = 0;
    std::uint8_t words = 0;  // 0: a predicate
    bool used = false;
  };
  struct Product {
    std::uint32_t result;
    std::vector<std::uint32_t> sources;
  };

  const ptx::Module& module_;
  const Code& code_;
  const ptx::Function& function_;
  const bool is_kernel_;
  MachineFunction result_;
  std::vector<std::uint32_t> read_count_;
  std::vector<std::uint32_t> write_count_;
  std::vector<char> free_;  // by info
  std::vector<Meaning> meanings_;
  std::vector<std::uint32_t> products_;       // that an addition could take in
  std::vector<std::uint32_t> fused_add_;      // infos
  std::vector<std::uint32_t> fused_product_;  // registers
  std::vector<Product> product_sources_;
  std::vector<Place> places_;
  Kind memory_kind_ = Kind::count;
};

}  // namespace

MachineProgram lower(const Program& program, std::uint32_t most_registers) {
  MachineProgram result;
  result.functions.resize(program.codes.size());
  std::uint64_t address = 0;
  std::uint32_t registers = 0;
  for (std::uint32_t id = 0; id < program.codes.size(); ++id) {
    if (program.codes[id].ops.empty()) continue;
    FunctionLowering lowering(program, program.codes[id], program.module->functions[id],
                              id == program.kernel);
    result.functions[id] = lowering.lower(std::min(most_registers, 255U));
    result.functions[id].address = address;
    address += (result.functions[id].instructions.size() * kInstructionBytes + 127) / 128 * 128;
    registers = std::max(registers, result.functions[id].used_registers);
  }
  // Two more for what the assembler needs itself; given in eights, at least sixteen.
  result.registers = std::max(16U, (registers + 2 + 7) / 8 * 8);
  return result;
}

}  // namespace manyscale::gpu
