// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/function_decoder.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/opcodes.hpp"
#include "gpu/exec/register_limit.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

std::string full_name(const ptx::Module& module, const ptx::Instruction& instruction) {
  std::string name(instruction.opcode);
  for (std::string_view modifier : module.modifiers_of(instruction)) name.append(".").append(modifier);
  return name;
}

constexpr std::uint64_t kMaximumFrame = std::uint64_t{512} << 10;  // local memory of a thread, as on hardware

}  // namespace

Slot ProgramDecoder::constant(std::uint64_t bits, unsigned bytes) {
  if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [found, is_new] = constants.try_emplace({bits, bytes}, 0);
  if (is_new) {
    const std::size_t offset = align_up(program.constants.size(), 64);
    program.constants.resize(offset + std::size_t{bytes} * kLanes);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(program.constants.data() + offset + std::size_t{bytes} * lane, &bits, std::min(bytes, 8U));
    found->second = make_slot(Base::constants, static_cast<std::uint32_t>(offset));
  }
  return found->second;
}

FunctionDecoder::FunctionDecoder(ProgramDecoder& program, std::uint32_t function)
    : program_(program), id_(function), function_(program.module.functions[function]) {
  code_.name = function_.name;
  for (const ptx::Register& r : function_.registers) {
    first_element_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    const unsigned size = ptx::size_of(r.type);
    const auto bytes = static_cast<std::uint8_t>(r.type == Type::pred ? 0 : std::max(size, 2U));
    bytes_.insert(bytes_.end(), std::max<unsigned>(r.elements, 1), bytes);
  }
  lay_out_frame();
}

bool FunctionDecoder::in_frame(const ptx::Variable& variable) const {
  if (variable.space == Space::local) return true;
  if (variable.space != Space::param) return false;
  return !is_kernel() ||
         static_cast<std::size_t>(&variable - function_.variables.data()) >= function_.parameters.size();
}

void FunctionDecoder::lay_out_frame() {
  std::uint64_t frame = 0;
  std::uint64_t block = 0;
  for (const ptx::Variable& variable : function_.variables) {
    std::uint64_t& top = in_frame(variable) ? frame : block;
    if (!in_frame(variable) && variable.space != Space::param) {
      frame_offsets_.push_back(0);
      continue;
    }
    top = align_up(top, variable.alignment);
    frame_offsets_.push_back(top);
    top += variable.size;
  }
  code_.local_bytes = static_cast<std::uint32_t>(std::min(align_up(frame, 16), kMaximumFrame));
  if (frame > kMaximumFrame)
    program_.program.problems.push_back({code_.name, ".local",
                                         "its local variables take " + std::to_string(frame) +
                                             " bytes, more than the 512 KiB that a thread can have",
                                         function_.where});
  auto locations = [&](const std::vector<std::uint32_t>& ids) {
    std::vector<ParameterLocation> result;
    for (std::uint32_t id : ids)
      result.push_back({static_cast<std::uint32_t>(frame_offsets_[id]),
                        static_cast<std::uint32_t>(function_.variables[id].size)});
    return result;
  };
  if (is_kernel()) return;
  if (!function_.register_parameters) {
    code_.parameters = locations(function_.parameters);
    code_.results = locations(function_.results);
    return;
  }
  for (std::uint32_t id : function_.parameters) {
    code_.register_parameters.push_back(unplaced(first_element_[id]));
    code_.register_parameter_bytes.push_back(bytes_[first_element_[id]]);
  }
  for (std::uint32_t id : function_.results) {
    code_.register_results.push_back(unplaced(first_element_[id]));
    code_.register_result_bytes.push_back(bytes_[first_element_[id]]);
  }
}

Slot FunctionDecoder::read(std::uint32_t register_id, unsigned element) {
  const std::uint32_t id = first_element_[register_id] + element;
  reads_.push_back(id);
  return unplaced(id);
}

Slot FunctionDecoder::write(std::uint32_t register_id, unsigned element) {
  const std::uint32_t id = first_element_[register_id] + element;
  writes_.push_back(id);
  return unplaced(id);
}

Slot FunctionDecoder::new_register(unsigned bytes) {
  bytes_.push_back(static_cast<std::uint8_t>(bytes));
  return unplaced(static_cast<std::uint32_t>(bytes_.size() - 1));
}

Slot FunctionDecoder::scratch(unsigned bytes) {
  const Slot slot = new_register(bytes);
  writes_.push_back(slot >> 2);
  return slot;
}

unsigned FunctionDecoder::bytes_of(std::uint32_t register_id) const {
  return bytes_[first_element_[register_id]];
}

bool FunctionDecoder::is_predicate(std::uint32_t register_id) const {
  return bytes_of(register_id) == 0;
}

const ptx::Variable& FunctionDecoder::variable(const Operand& operand) const {
  return operand.is_local ? function_.variables[operand.id] : module().variables[operand.id];
}

std::uint64_t FunctionDecoder::address(const Operand& operand) const {
  const ptx::Variable& found = variable(operand);
  if (found.space == Space::shared) {
    const auto offset = program_.shared.find({operand.is_local ? id_ : ptx::kNone, operand.id});
    if (offset == program_.shared.end())
      throw Unsupported("shared variable " + std::string(found.name) + " has no address");
    return offset->second;
  }
  if (found.space == Space::param) return parameter_offset(operand.id);
  const auto& addresses =
      operand.is_local ? program_.placement.function_variables[id_] : program_.placement.variables;
  const std::uint64_t address = operand.id < addresses.size() ? addresses[operand.id] : 0;
  if (address == 0)
    throw Unsupported("variable " + std::string(found.name) +
                      " is declared .extern and defined in no loaded module");
  return address;
}

Op& FunctionDecoder::emit(const ptx::Instruction& instruction, Handler handler, Class kind, Flow flow) {
  Op& op = code_.ops.emplace_back();
  op.handler = handler;
  op.flow = flow;
  op.info = static_cast<std::uint32_t>(code_.infos.size());
  if (instruction.guard != ptx::kNone) {
    op.guard = read(instruction.guard, 0);
    op.guard_negated = instruction.guard_negated;
  }
  OpInfo& info = code_.infos.emplace_back();
  info.kind = kind;
  info.where = instruction.where;
  info.source = instruction.source;
  info.instruction = static_cast<std::uint32_t>(&instruction - function_.instructions.data());
  return op;
}

Slot FunctionDecoder::emit_hidden(const ptx::Instruction& instruction, Handler handler, unsigned bytes,
                                  Slot source, std::int64_t immediate) {
  const Slot result = new_register(bytes);
  reads_.push_back(result >> 2);
  hidden_.push_back({static_cast<std::uint32_t>(code_.ops.size()), result >> 2});
  Op& op = emit(instruction, handler, Class::move, Flow::next);
  op.guard = kNoSlot;
  op.dst = result;
  op.src[0] = source;
  op.immediate = immediate;
  return result;
}

std::uint32_t FunctionDecoder::list(std::span<const Slot> slots) {
  const auto start = static_cast<std::uint32_t>(code_.slots.size());
  code_.slots.insert(code_.slots.end(), slots.begin(), slots.end());
  return start;
}

std::uint32_t FunctionDecoder::new_call(CallSite site) {
  code_.calls.push_back(std::move(site));
  return static_cast<std::uint32_t>(code_.calls.size() - 1);
}

void FunctionDecoder::decode_instruction(const ptx::Instruction& instruction) {
  reads_.clear();
  writes_.clear();
  hidden_.clear();
  const std::size_t first = code_.ops.size();
  auto problem = [&](std::string why) {
    program_.program.problems.push_back(
        {code_.name, full_name(module(), instruction), std::move(why), instruction.where});
  };
  Type type = Type::none;
  for (std::string_view modifier : module().modifiers_of(instruction))
    if ((type = ptx::type_named(modifier)) != Type::none) break;
  const Opcode* opcode = find_opcode(instruction.opcode, type);
  if (opcode == nullptr) {
    const auto is_known = [&](Type other) { return find_opcode(instruction.opcode, other) != nullptr; };
    problem(is_known(Type::u32) || is_known(Type::f32) || is_known(Type::f16)
                ? "it is not known for " + std::string(ptx::name_of(type))
                : "the instruction is not known");
    return;
  }
  Builder builder(*this, instruction);
  try {
    opcode->decode(builder);
    if (const std::string left = builder.unaccounted(); !left.empty())
      throw Unsupported("." + left + " is not supported");
  } catch (const Unsupported& error) {
    problem(error.what());
    code_.ops.resize(first);
    code_.infos.resize(first);
    uses_.first.resize(2 * first + 1);
    return;
  }
  for (std::size_t i = first; i < code_.ops.size(); ++i) {
    OpInfo& info = code_.infos[i];
    const auto hidden = std::ranges::find(hidden_, i, &std::pair<std::uint32_t, std::uint32_t>::first);
    auto add = [&](std::uint32_t id) { uses_.registers.push_back(id); };
    if (hidden != hidden_.end()) {
      const Slot source = code_.ops[i].src[0];
      if ((source & 3) == 3 && source != kNoSlot) add(source >> 2);
      uses_.first.push_back(static_cast<std::uint32_t>(uses_.registers.size()));
      add(hidden->second);
    } else {
      std::ranges::for_each(reads_, add);
      uses_.first.push_back(static_cast<std::uint32_t>(uses_.registers.size()));
      std::ranges::for_each(writes_, add);
    }
    uses_.first.push_back(static_cast<std::uint32_t>(uses_.registers.size()));
    info.first_read = uses_.first[2 * i];
    info.first_write = uses_.first[2 * i + 1];
    info.reads = static_cast<std::uint16_t>(info.first_write - info.first_read);
    info.writes = static_cast<std::uint16_t>(uses_.first[2 * i + 2] - info.first_write);
  }
}

Code FunctionDecoder::decode() {
  uses_.first.push_back(0);
  std::vector<std::uint32_t> op_of_instruction;
  op_of_instruction.reserve(function_.instructions.size() + 1);
  for (const ptx::BranchTable& table : function_.branch_tables) code_.branch_tables.push_back(table.targets);
  for (const ptx::Instruction& instruction : function_.instructions) {
    op_of_instruction.push_back(static_cast<std::uint32_t>(code_.ops.size()));
    decode_instruction(instruction);
  }
  op_of_instruction.push_back(static_cast<std::uint32_t>(code_.ops.size()));
  // The end of the text is the end of the function.
  ptx::Instruction end;
  end.where = function_.instructions.empty() ? function_.where : function_.instructions.back().where;
  end.source = function_.instructions.empty() ? ptx::SourceLine{} : function_.instructions.back().source;
  emit(end, nullptr, Class::branch, Flow::ret);
  code_.infos.back().instruction = ptx::kNone;
  uses_.first.resize(2 * code_.ops.size() + 1, static_cast<std::uint32_t>(uses_.registers.size()));

  resolve_targets(op_of_instruction);
  if (program_.reorder) reorder();
  assign_slots();
  insert_joins(make_blocks(code_.ops, code_.branch_tables));
  code_.registers = std::move(uses_.registers);
  return std::move(code_);
}

void FunctionDecoder::resolve_targets(std::span<const std::uint32_t> op_of_instruction) {
  for (Op& op : code_.ops)
    if (op.flow == Flow::branch) op.aux = op_of_instruction[op.aux];
  for (auto& table : code_.branch_tables)
    for (std::uint32_t& target : table) target = op_of_instruction[target];
}

Schedulable FunctionDecoder::schedulable(const Op& op) const {
  Schedulable result;
  const OpInfo& info = code_.infos[op.info];
  result.stays = op.flow != Flow::next || info.instruction == ptx::kNone ||
                 (op.flags & (kOrdered | kOrderedIfRead)) != 0;
  if (result.stays) return result;
  const ptx::Instruction& text = function_.instructions[info.instruction];
  const bool plain = text.opcode == "ld" || text.opcode == "st" || text.opcode == "ldu";
  switch (info.kind) {
    case Class::load:
    case Class::store:
      result.writes_memory = info.kind == Class::store;
      result.touches = Touches::anything;
      if (plain) {
        const Space space = space_of(op);
        result.touches = space == Space::global    ? Touches::global
                         : space == Space::shared  ? Touches::shared
                         : space == Space::local   ? Touches::local
                         : space == Space::generic ? Touches::anything
                                                   : Touches::parameters;
        const bool far = space == Space::global || space == Space::generic || space == Space::local;
        result.latency = info.kind == Class::store ? 1 : far ? 200 : space == Space::shared ? 24 : 8;
      }
      break;
    case Class::atomic:
    case Class::texture:
    case Class::tensor:
      result.touches = Touches::anything;
      result.writes_memory = info.kind != Class::texture || text.opcode == "sust";
      break;
    case Class::warp:
    case Class::barrier:
    case Class::fence:
    case Class::branch:
    case Class::other:
      result.stays = true;
      break;
    case Class::special_function:
    case Class::convert:
      result.latency = 14;
      break;
    case Class::fp64:
      result.latency = 8;
      break;
    default:
      break;
  }
  const auto modifiers = module().modifiers_of(text);
  result.uses_carry = text.opcode == "addc" || text.opcode == "subc" || text.opcode == "madc" ||
                      std::ranges::find(modifiers, "cc") != modifiers.end();
  return result;
}

// As an assembler would: loads early, uses late. The order of what can depend on each other stays.
void FunctionDecoder::reorder() {
  std::vector<Schedulable> operations;
  for (const Op& op : code_.ops) operations.push_back(schedulable(op));
  const std::vector<std::uint32_t> order = schedule(make_blocks(code_.ops, code_.branch_tables), uses_,
                                                    operations, bytes_, register_limit(function_));
  std::vector<Op> ops;
  RegisterUses uses;
  uses.first.push_back(0);
  for (std::uint32_t i : order) {
    ops.push_back(code_.ops[i]);
    OpInfo& info = code_.infos[code_.ops[i].info];
    info.first_read = static_cast<std::uint32_t>(uses.registers.size());
    for (std::uint32_t id : uses_.reads(i)) uses.registers.push_back(id);
    info.first_write = static_cast<std::uint32_t>(uses.registers.size());
    uses.first.push_back(info.first_write);
    for (std::uint32_t id : uses_.writes(i)) uses.registers.push_back(id);
    uses.first.push_back(static_cast<std::uint32_t>(uses.registers.size()));
  }
  code_.ops = std::move(ops);
  uses_ = std::move(uses);
}

void FunctionDecoder::assign_slots() {
  const std::vector<Block> blocks = make_blocks(code_.ops, code_.branch_tables);
  std::vector<LiveRange> ranges = live_ranges(code_.ops, blocks, uses_, bytes_.size());
  // Registers that carry parameters and results live from the call to the return.
  for (const auto* slots : {&code_.register_parameters, &code_.register_results})
    for (Slot slot : *slots) ranges[slot >> 2] = {0, static_cast<std::uint32_t>(code_.ops.size())};
  const FrameLayout layout = allocate_registers(ranges, bytes_);
  code_.frame_bytes = layout.bytes;
  auto assign = [&](Slot& slot) {
    if (slot != kNoSlot && (slot & 3) == static_cast<Slot>(Base::unplaced))
      slot = make_slot(Base::frame, layout.offset[slot >> 2]);
  };
  for (Op& op : code_.ops) {
    assign(op.dst);
    assign(op.dst2);
    for (Slot& slot : op.src) assign(slot);
    assign(op.guard);
  }
  for (Slot& slot : code_.slots) assign(slot);
  for (CallSite& call : code_.calls) {
    for (Slot& slot : call.register_arguments) assign(slot);
    for (Slot& slot : call.register_results) assign(slot);
  }
  for (Slot& slot : code_.register_parameters) assign(slot);
  for (Slot& slot : code_.register_results) assign(slot);
}

void FunctionDecoder::insert_joins(std::span<const Block> blocks) {
  std::vector<std::uint32_t> reconvergence = immediate_post_dominators(blocks);
  // Lanes that meet only to end the kernel need not wait for each other.
  for (std::uint32_t& block : reconvergence) {
    if (block == kNoBlock) continue;
    const Op& first = code_.ops[blocks[block].first];
    const bool ends = first.flow == Flow::exit || (first.flow == Flow::ret && is_kernel());
    if (ends && first.guard == kNoSlot) block = kNoBlock;
  }
  std::vector<char> is_reconvergence(blocks.size(), 0);
  auto parts = [&](const Block& block) {
    const Op& op = code_.ops[block.last - 1];
    return (op.flow == Flow::branch && op.guard != kNoSlot) || op.flow == Flow::branch_table;
  };
  for (std::size_t b = 0; b < blocks.size(); ++b)
    if (parts(blocks[b]) && reconvergence[b] != kNoBlock) is_reconvergence[reconvergence[b]] = 1;
  std::vector<Op> ops;
  std::vector<std::uint32_t> moved(code_.ops.size() + 1, 0);
  std::vector<std::uint32_t> start_of_block(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    start_of_block[b] = static_cast<std::uint32_t>(ops.size());
    moved[blocks[b].first] = start_of_block[b];
    if (is_reconvergence[b]) {
      Op join;
      join.flow = Flow::join;
      join.info = code_.ops[blocks[b].first].info;
      ops.push_back(join);
    }
    for (std::uint32_t i = blocks[b].first; i < blocks[b].last; ++i) ops.push_back(code_.ops[i]);
  }
  std::size_t b = 0;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    Op& op = ops[at];
    while (b + 1 < blocks.size() && start_of_block[b + 1] <= at) ++b;
    if (op.flow == Flow::branch) op.aux = moved[op.aux];
    if (op.flow == Flow::branch || op.flow == Flow::branch_table)
      op.immediate =
          reconvergence[b] == kNoBlock ? -1 : static_cast<std::int64_t>(start_of_block[reconvergence[b]]);
  }
  for (auto& table : code_.branch_tables)
    for (std::uint32_t& target : table) target = moved[target];
  code_.ops = std::move(ops);
}

}  // namespace manyscale::gpu
