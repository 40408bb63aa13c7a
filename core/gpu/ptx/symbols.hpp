// SPDX-License-Identifier: Apache-2.0
// What the names of a module stand for while it is parsed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/module.hpp"

namespace manyscale::ptx {

enum class SymbolKind : std::uint8_t {
  reg,           // id: in the function's registers
  group,         // %r<100>: id: of its first register or variable, count of them
  local_group,   // the same for variables of a function
  module_group,  // the same for variables of the module
  special,       // %tid; count: of its elements, 0 if it is no vector
  constant,      // WARP_SZ
  variable,      // id: in the module
  local,         // id: in the function's variables
  function,
  label,
  branch_table,
  call_table,
  prototype,
};

// What one name stands for in one scope.
struct Symbol {
  SymbolKind kind = SymbolKind::reg;
  std::uint32_t id = kNone;
  std::uint32_t count = 0;
  std::uint32_t depth = 0;
  std::uint32_t name = 0;          // in the table's names
  std::uint32_t shadowed = kNone;  // the symbol that the name stood for before
};

// The names of nested scopes in one hash table: a scope that ends gives every name back what it stood for
// before.
class SymbolTable {
 public:
  explicit SymbolTable(std::uint64_t seed);

  // What the name stands for in the innermost scope that declares it, or nullptr.
  const Symbol* find(std::string_view name) const;
  // Declares a name in the innermost scope, where it must not be declared yet.
  void declare(std::string_view name, SymbolKind kind, std::uint32_t id, std::uint32_t count = 0);
  bool is_declared_here(std::string_view name) const;

  void open_scope() { scopes_.push_back(static_cast<std::uint32_t>(symbols_.size())); }
  void close_scope();
  std::uint32_t depth() const { return static_cast<std::uint32_t>(scopes_.size()); }

  // What the name of a symbol stands for outside of its scope, or nullptr.
  const Symbol* shadowed_by(const Symbol& symbol) const {
    return symbol.shadowed == kNone ? nullptr : &symbols_[symbol.shadowed];
  }

  // All that is declared at present, outermost first.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  std::string_view name_of(const Symbol& symbol) const { return names_[symbol.name].text; }

 private:
  struct Name {
    std::string_view text;
    std::uint64_t hash;
    std::uint32_t top;  // what it stands for now
  };

  std::uint64_t hash(std::string_view name) const;
  std::uint32_t slot_of(std::string_view name, std::uint64_t hash) const;
  void grow();

  std::uint64_t seed_;
  std::vector<std::uint32_t> slots_;  // 1 + index into names_; 0: free
  std::vector<Name> names_;           // never removed: the next function uses most of them again
  std::vector<Symbol> symbols_;
  std::vector<std::uint32_t> scopes_;
};

// How many trailing digits a name has.
std::size_t trailing_digits(std::string_view name);

// Looks for the name most like one that is unknown.
class NearestName {
 public:
  explicit NearestName(std::string_view unknown);
  void consider(std::string_view candidate);
  std::string_view best() const { return best_; }  // empty: none is close

 private:
  std::string_view unknown_;
  std::string_view best_;
  unsigned distance_;
  std::vector<unsigned> previous_, current_;
};

}  // namespace manyscale::ptx
