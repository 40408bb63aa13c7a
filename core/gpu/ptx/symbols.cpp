// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/symbols.hpp"

#include <algorithm>
#include <cstring>

namespace manyscale::ptx {

SymbolTable::SymbolTable(std::uint64_t seed) : seed_(seed | 1), slots_(1024) {}

std::uint64_t SymbolTable::hash(std::string_view name) const {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  std::uint64_t state = seed_ ^ (name.size() * kMultiplier);
  const char* position = name.data();
  std::size_t left = name.size();
  for (; left >= 8; left -= 8, position += 8) {
    std::uint64_t word;
    std::memcpy(&word, position, 8);
    state = (state ^ word) * kMultiplier;
    state ^= state >> 32;
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < left; ++i) word = word << 8 | static_cast<unsigned char>(position[i]);
  state = (state ^ word) * kMultiplier;
  state ^= state >> 29;
  state *= seed_;
  return state ^ state >> 32;
}

std::uint32_t SymbolTable::slot_of(std::string_view name, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != 0) {
    const Name& candidate = names_[slots_[slot] - 1];
    if (candidate.hash == hash && candidate.text == name) break;
    slot = (slot + 1) & mask;
  }
  return static_cast<std::uint32_t>(slot);
}

const Symbol* SymbolTable::find(std::string_view name) const {
  const std::uint32_t index = slots_[slot_of(name, hash(name))];
  if (index == 0) return nullptr;
  const std::uint32_t top = names_[index - 1].top;
  return top == kNone ? nullptr : &symbols_[top];
}

bool SymbolTable::is_declared_here(std::string_view name) const {
  const Symbol* symbol = find(name);
  return symbol != nullptr && symbol->depth == depth();
}

void SymbolTable::declare(std::string_view name, SymbolKind kind, std::uint32_t id, std::uint32_t count) {
  const std::uint64_t hashed = hash(name);
  std::uint32_t slot = slot_of(name, hashed);
  if (slots_[slot] == 0) {
    if (2 * (names_.size() + 1) > slots_.size()) {
      grow();
      slot = slot_of(name, hashed);
    }
    names_.push_back({name, hashed, kNone});
    slots_[slot] = static_cast<std::uint32_t>(names_.size());
  }
  Name& entry = names_[slots_[slot] - 1];
  symbols_.push_back({kind, id, count, depth(), slots_[slot] - 1, entry.top});
  entry.top = static_cast<std::uint32_t>(symbols_.size() - 1);
}

void SymbolTable::close_scope() {
  for (; symbols_.size() > scopes_.back(); symbols_.pop_back()) {
    names_[symbols_.back().name].top = symbols_.back().shadowed;
  }
  scopes_.pop_back();
}

void SymbolTable::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::size_t slot = names_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

std::size_t trailing_digits(std::string_view name) {
  std::size_t digits = 0;
  while (digits < name.size() && name[name.size() - 1 - digits] >= '0' &&
         name[name.size() - 1 - digits] <= '9') {
    ++digits;
  }
  return digits;
}

NearestName::NearestName(std::string_view unknown)
    : unknown_(unknown.substr(0, 256)),
      distance_(std::min<unsigned>(3, static_cast<unsigned>(unknown.size() + 1) / 3)) {
  ++distance_;
}

void NearestName::consider(std::string_view candidate) {
  if (candidate.empty() || candidate.size() >= unknown_.size() + distance_ ||
      unknown_.size() >= candidate.size() + distance_) {
    return;
  }
  previous_.resize(unknown_.size() + 1);
  current_.resize(unknown_.size() + 1);
  for (std::size_t j = 0; j <= unknown_.size(); ++j) previous_[j] = static_cast<unsigned>(j);
  for (std::size_t i = 0; i < candidate.size(); ++i) {
    current_[0] = static_cast<unsigned>(i + 1);
    for (std::size_t j = 0; j < unknown_.size(); ++j) {
      const unsigned replaced = previous_[j] + (candidate[i] == unknown_[j] ? 0 : 1);
      current_[j + 1] = std::min({replaced, previous_[j + 1] + 1, current_[j] + 1});
    }
    std::swap(previous_, current_);
  }
  if (previous_[unknown_.size()] < distance_) {
    distance_ = previous_[unknown_.size()];
    best_ = candidate;
  }
}

}  // namespace manyscale::ptx
