// SPDX-License-Identifier: Apache-2.0
// Names: what is declared, what a name stands for, and labels that are used before they stand.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {
namespace {

constexpr std::array<std::string_view, 8> kVectorRegisters = {
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
};

constexpr std::array<std::string_view, 29> kSpecialRegisters = {
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%is_explicit_cluster",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%total_smem_size",
    "%aggr_smem_size",
    "%dynamic_smem_size",
    "%current_graph_exec",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
};

constexpr std::array<std::string_view, 48> kNumberedRegisters = {
    "%pm0",      "%pm1",      "%pm2",      "%pm3",      "%pm4",      "%pm5",      "%pm6",      "%pm7",
    "%pm0_64",   "%pm1_64",   "%pm2_64",   "%pm3_64",   "%pm4_64",   "%pm5_64",   "%pm6_64",   "%pm7_64",
    "%envreg0",  "%envreg1",  "%envreg2",  "%envreg3",  "%envreg4",  "%envreg5",  "%envreg6",  "%envreg7",
    "%envreg8",  "%envreg9",  "%envreg10", "%envreg11", "%envreg12", "%envreg13", "%envreg14", "%envreg15",
    "%envreg16", "%envreg17", "%envreg18", "%envreg19", "%envreg20", "%envreg21", "%envreg22", "%envreg23",
    "%envreg24", "%envreg25", "%envreg26", "%envreg27", "%envreg28", "%envreg29", "%envreg30", "%envreg31",
};

bool is_target(SymbolKind kind) {
  return kind == SymbolKind::label || kind == SymbolKind::branch_table || kind == SymbolKind::call_table ||
         kind == SymbolKind::prototype;
}

}  // namespace

void ModuleParser::declare_predefined() {
  for (const std::string_view name : kVectorRegisters) symbols_.declare(name, SymbolKind::special, 0, 4);
  for (const std::string_view name : kSpecialRegisters) symbols_.declare(name, SymbolKind::special, 0);
  for (const std::string_view name : kNumberedRegisters) symbols_.declare(name, SymbolKind::special, 0);
  symbols_.declare("WARP_SZ", SymbolKind::constant, 0);
}

void ModuleParser::declare(const Token& name, SymbolKind kind, std::uint32_t id) {
  if (name.text == "_" || name.text == "WARP_SZ")
    fail(name, "expected a name to declare, found " + quoted(name.text));
  std::uint32_t number = 0;
  const Symbol* group = find_group(name.text, number);
  if (symbols_.is_declared_here(name.text) || (group != nullptr && group->depth == groups_.depth())) {
    fail(name, quoted(name.text) + " is declared twice in the same scope");
  }
  symbols_.declare(name.text, kind, id);
  if (!scopes_.empty() && !is_target(kind) && trailing_digits(name.text) > 0) {
    ++scopes_.back().numbered[name.text[0] == '%' ? 1 : 0];
  }
}

void ModuleParser::declare_group(const Token& prefix, SymbolKind kind, std::uint32_t first,
                                 std::uint32_t count) {
  if (groups_.is_declared_here(prefix.text)) {
    fail(prefix, quoted(prefix.text) + " is declared twice in the same scope");
  }
  if (scopes_.empty() || scopes_.back().numbered[prefix.text[0] == '%' ? 1 : 0] > 0) {
    const std::vector<std::string_view>& names = numbered_names(prefix, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (symbols_.is_declared_here(names[i])) {
        fail(prefix, quoted(names[i]) + " is declared twice in the same scope");
      }
    }
  }
  groups_.declare(prefix.text, kind, first, count);
  if (trailing_digits(prefix.text) > 0) digit_prefixes_ = true;
}

const std::vector<std::string_view>& ModuleParser::numbered_names(const Token& group, std::uint32_t count) {
  const std::string_view prefix = group.text;
  // Functions use the same prefixes again and again, so their names are made once for the module.
  std::vector<std::string_view>& names = generated_[prefix];
  if (names.size() >= count) return names;
  constexpr std::size_t kDigits = 10;
  const std::uint64_t bytes = (count - names.size()) * (prefix.size() + kDigits);
  if (bytes > limits_.names - total_generated_) {
    fail(group, "the names that " + quoted(prefix) + " stands for are too long");
  }
  total_generated_ += bytes;
  auto storage = std::make_unique<char[]>(bytes);
  char* position = storage.get();
  names.reserve(count);
  for (std::size_t i = names.size(); i < count; ++i) {
    char* begin = position;
    std::memcpy(position, prefix.data(), prefix.size());
    position = std::to_chars(position + prefix.size(), position + prefix.size() + kDigits, i).ptr;
    names.emplace_back(begin, static_cast<std::size_t>(position - begin));
  }
  module_.generated_names.push_back(std::move(storage));
  return names;
}

const Symbol* ModuleParser::find_group(std::string_view name, std::uint32_t& number) const {
  const std::size_t digits = trailing_digits(name);
  if (digits == 0 || digits == name.size() || groups_.symbols().empty()) return nullptr;
  const Symbol* best = nullptr;
  constexpr std::size_t kMostDigits = 10;
  for (std::size_t used = digits; used > 0; used = std::min(used - 1, kMostDigits)) {
    const std::string_view tail = name.substr(name.size() - used);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), value);
    if (error == std::errc()) {
      const Symbol* group = groups_.find(name.substr(0, name.size() - used));
      while (group != nullptr && value >= group->count) group = groups_.shadowed_by(*group);
      if (group != nullptr && (best == nullptr || group->depth > best->depth)) {
        best = group;
        number = value;
      }
    }
    if (!digit_prefixes_) break;
  }
  return best;
}

bool ModuleParser::resolve(std::string_view name, Resolved& result) const {
  std::uint32_t number = 0;
  const Symbol* group = find_group(name, number);
  if (group != nullptr) {
    const bool unique = group->depth > 0 && scopes_.back().numbered[name[0] == '%' ? 1 : 0] == 0;
    const Symbol* exact = unique ? nullptr : symbols_.find(name);
    if (exact == nullptr || exact->depth < group->depth || is_target(exact->kind)) {
      result.kind = group->kind == SymbolKind::group         ? SymbolKind::reg
                    : group->kind == SymbolKind::local_group ? SymbolKind::local
                                                             : SymbolKind::variable;
      result.id = group->id + number;
      return true;
    }
  }
  const Symbol* symbol = symbols_.find(name);
  if (symbol == nullptr) return false;
  result = {symbol->kind, symbol->id};
  return true;
}

void ModuleParser::fail_unknown(std::string_view name, Location where, Sought what) const {
  constexpr std::size_t kMostCandidates = 4096;
  const char* word = what == Sought::label ? "label" : what == Sought::function ? "function" : "name";
  std::string message = std::string("unknown ") + word + " " + quoted(name);
  const Symbol* group = groups_.find(name.substr(0, name.size() - trailing_digits(name)));
  if (group != nullptr && trailing_digits(name) > 0 && what == Sought::name) {
    const std::string prefix(groups_.name_of(*group).substr(0, 60));
    lexer_.fail(where, message + ", " + prefix + "<" + std::to_string(group->count) +
                           "> declares numbers below " + std::to_string(group->count));
  }
  NearestName nearest(name);
  const auto& symbols = symbols_.symbols();
  for (std::size_t i = symbols.size(); i > 0 && symbols.size() - i < kMostCandidates; --i) {
    const Symbol& symbol = symbols[i - 1];
    const bool fits = what == Sought::label      ? is_target(symbol.kind)
                      : what == Sought::function ? symbol.kind == SymbolKind::function
                                                 : !is_target(symbol.kind);
    if (fits) nearest.consider(symbols_.name_of(symbol));
  }
  std::string best(nearest.best());
  if (best.empty() && what == Sought::name) {
    // %rr7 for %r7: the prefix of a group may be what is misspelt.
    const std::size_t digits = trailing_digits(name);
    NearestName prefix(name.substr(0, name.size() - digits));
    const auto& groups = groups_.symbols();
    for (std::size_t i = groups.size(); digits > 0 && i > 0 && groups.size() - i < kMostCandidates; --i) {
      prefix.consider(groups_.name_of(groups[i - 1]));
    }
    if (!prefix.best().empty())
      best = std::string(prefix.best()) + std::string(name.substr(name.size() - digits));
  }
  if (!best.empty()) message += ", did you mean " + quoted(best) + "?";
  lexer_.fail(where, message);
}

void ModuleParser::open_scope() {
  Scope scope;
  if (!scopes_.empty()) scope = scopes_.back();
  scope.first_pending = pending_.size();
  scopes_.push_back(scope);
  symbols_.open_scope();
  groups_.open_scope();
}

void ModuleParser::close_scope() {
  resolve_pending(scopes_.back().first_pending);
  scopes_.pop_back();
  symbols_.close_scope();
  groups_.close_scope();
}

void ModuleParser::resolve_pending(std::size_t first) {
  std::size_t kept = first;
  for (std::size_t i = first; i < pending_.size(); ++i) {
    if (patch(pending_[i])) continue;
    if (scopes_.size() == 1) fail_unknown(pending_[i].name, pending_[i].where, pending_[i].what);
    pending_[kept++] = pending_[i];
  }
  pending_.resize(kept);
}

bool ModuleParser::patch(const PendingLabel& pending) {
  const Symbol* symbol = symbols_.find(pending.name);
  // A label further out must wait: one of the same name may still follow in between.
  if (symbol == nullptr || symbol->depth != symbols_.depth() || !is_target(symbol->kind)) return false;
  if (pending.operand == kNone) {
    if (symbol->kind != SymbolKind::label)
      lexer_.fail(pending.where, quoted(pending.name) + " is not a label");
    function_->branch_tables[pending.table].targets[pending.slot] = symbol->id;
    return true;
  }
  Operand& operand = module_.operands[pending.operand];
  operand.kind = symbol->kind == SymbolKind::label ? OperandKind::label : OperandKind::table;
  operand.id = symbol->id;
  if (symbol->kind == SymbolKind::branch_table) operand.component = 0;
  if (symbol->kind == SymbolKind::call_table) operand.component = 1;
  if (symbol->kind == SymbolKind::prototype) operand.component = 2;
  return true;
}

}  // namespace manyscale::ptx
