// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/issue_ports.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <stdexcept>

namespace manyscale::cpu {

namespace {

// The kinds that a word in the table of ports stands for.
struct Word {
  std::string_view name;
  std::vector<InstructionClass> kinds;
};

const std::vector<Word>& known_words() {
  static const std::vector<Word> words{
      {"integer", {InstructionClass::integer, InstructionClass::marker}},
      {"multiply", {InstructionClass::multiply}},
      {"divide", {InstructionClass::divide}},
      {"float",
       {InstructionClass::float_add, InstructionClass::float_multiply, InstructionClass::float_fused,
        InstructionClass::float_divide, InstructionClass::float_root, InstructionClass::float_convert}},
      {"float_add", {InstructionClass::float_add}},
      {"float_multiply", {InstructionClass::float_multiply}},
      {"float_fused", {InstructionClass::float_fused}},
      {"float_divide", {InstructionClass::float_divide}},
      {"float_root", {InstructionClass::float_root}},
      {"float_convert", {InstructionClass::float_convert}},
      {"load", {InstructionClass::load}},
      {"store", {InstructionClass::store}},
      {"atomic", {InstructionClass::atomic}},
      {"fence", {InstructionClass::fence}},
      {"control", {InstructionClass::branch, InstructionClass::jump, InstructionClass::indirect}},
      {"system", {InstructionClass::system}}};
  return words;
}

std::string known_names() {
  std::string names;
  for (const Word& word : known_words()) names += (names.empty() ? "" : ", ") + std::string(word.name);
  return names;
}

}  // namespace

IssuePorts::IssuePorts(const CoreSpec& spec) : width_(0), slots_(CycleMap::range) {
  read_ports(spec.ports);
  if (spec.issue_width > 0) width_ = static_cast<std::uint32_t>(spec.issue_width);
  const auto set = [&](std::size_t row, const InstructionTiming& timing) {
    rows_[row].latency = timing.latency;
    rows_[row].interval = timing.interval;
    rows_[row].unit = row * most_ports;
  };
  const auto set_kind = [&](InstructionClass kind, const InstructionTiming& timing) {
    set(static_cast<std::size_t>(kind), timing);
  };
  const InstructionTimings& t = spec.timing;
  set_kind(InstructionClass::integer, t.integer);
  set_kind(InstructionClass::multiply, t.multiply);
  set_kind(InstructionClass::divide, t.divide);
  set_kind(InstructionClass::float_add, t.float_add);
  set_kind(InstructionClass::float_multiply, t.float_multiply);
  set_kind(InstructionClass::float_fused, t.float_fused);
  set_kind(InstructionClass::float_divide, t.float_divide);
  set_kind(InstructionClass::float_root, t.float_root);
  set_kind(InstructionClass::float_convert, t.float_convert);
  set_kind(InstructionClass::load, t.load);
  set_kind(InstructionClass::store, t.store);
  set_kind(InstructionClass::atomic, t.atomic);
  set_kind(InstructionClass::fence, t.fence);
  for (const InstructionClass kind :
       {InstructionClass::branch, InstructionClass::jump, InstructionClass::indirect})
    set_kind(kind, t.control);
  set_kind(InstructionClass::system, t.system);
  set_kind(InstructionClass::marker, t.integer);
  set(single_divide, t.float_divide_single);
  set(single_root, t.float_root_single);
  rows_[single_divide].ports = rows_[static_cast<std::size_t>(InstructionClass::float_divide)].ports;
  rows_[single_root].ports = rows_[static_cast<std::size_t>(InstructionClass::float_root)].ports;
  const std::size_t divider = rows_[static_cast<std::size_t>(InstructionClass::float_divide)].unit;
  for (const std::size_t row :
       {static_cast<std::size_t>(InstructionClass::float_root), single_divide, single_root}) {
    rows_[row].unit = divider;
  }
  units_.resize(rows * most_ports);
  for (const Word& word : known_words()) {
    for (const InstructionClass kind : word.kinds) {
      if (rows_[static_cast<std::size_t>(kind)].ports == 0) {
        throw std::invalid_argument("ports: no port takes '" + std::string(word.name) + "'");
      }
    }
  }
}

// Ports that take few kinds come first, so that what can go elsewhere leaves them to those who cannot.
void IssuePorts::read_ports(const std::string& text) {
  std::vector<std::vector<InstructionClass>> ports(1);
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const auto& words = known_words();
    const auto found =
        std::find_if(words.begin(), words.end(), [&](const Word& each) { return each.name == word; });
    if (found == words.end()) {
      throw std::invalid_argument("ports: there is no kind '" + word + "'; known: " + known_names());
    }
    ports.back().insert(ports.back().end(), found->kinds.begin(), found->kinds.end());
    word.clear();
  };
  for (const char letter : text) {
    if (letter == ';') {
      end_word();
      ports.emplace_back();
    } else if (letter == ' ' || letter == ',' || letter == '\n' || letter == '\t') {
      end_word();
    } else {
      word += letter;
    }
  }
  end_word();
  std::erase_if(ports, [](const auto& port) { return port.empty(); });
  if (ports.size() > most_ports)
    throw std::invalid_argument("ports: at most 32, not " + std::to_string(ports.size()));
  std::stable_sort(ports.begin(), ports.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (std::size_t port = 0; port < ports.size(); ++port) {
    for (const InstructionClass kind : ports[port]) rows_[static_cast<std::size_t>(kind)].ports |= 1u << port;
  }
  width_ = static_cast<std::uint32_t>(ports.size());
}

// Issues on a port for a cycle to a unit behind it that is then busy for longer. Of ports only the next
// cycles are known: what lies further ahead finds its port free, and others do not see that it takes it.
Cycle IssuePorts::take_unit(Row& row, Cycle ready, Cycle now) {
  Cycle best = unknown;
  int best_port = 0;
  for (std::uint32_t left = row.ports; left != 0; left &= left - 1) {
    const int port = std::countr_zero(left);
    const memory::Timetable& unit = units_[row.unit + static_cast<std::size_t>(port)];
    Cycle cycle = unit.earliest(ready, row.interval);
    while (cycle < best && cycle - now < CycleMap::range) {
      const Slot& slot = slot_at(cycle);
      if ((slot.taken >> port & 1) == 0 && slot.issued < width_) break;
      cycle = unit.earliest(cycle + 1, row.interval);
    }
    if (cycle < best) {
      best = cycle;
      best_port = port;
    }
  }
  units_[row.unit + static_cast<std::size_t>(best_port)].take(best, row.interval, now);
  if (best - now >= CycleMap::range) return best;
  Slot& slot = slot_at(best);
  slot.taken |= 1u << best_port;
  ++slot.issued;
  return best;
}

}  // namespace manyscale::cpu
