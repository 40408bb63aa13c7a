// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/konata.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace manyscale::cpu {

namespace {

// A line of the log belongs to a cycle; lines of one cycle keep the order of instructions.
struct Line {
  Cycle cycle;
  std::size_t row;
  int step;
};

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

std::string KonataLog::text(const Label& label) const {
  std::vector<Line> lines;
  lines.reserve(rows_.size() * 5);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const Cycle cycles[] = {row.fetched, row.dispatched, row.issued, row.complete, row.committed};
    for (int step = 0; step < 5; ++step) lines.push_back({cycles[step], i, step});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.cycle != b.cycle ? a.cycle < b.cycle : a.row != b.row ? a.row < b.row : a.step < b.step;
  });
  std::string text = "Kanata\t0004\n";
  if (lines.empty()) return text;
  text += "C=\t" + std::to_string(lines.front().cycle) + "\n";
  Cycle cycle = lines.front().cycle;
  static constexpr const char* stages[] = {"F", "W", "X", "C"};
  for (const Line& line : lines) {
    if (line.cycle > cycle) text += "C\t" + std::to_string(line.cycle - cycle) + "\n";
    cycle = line.cycle;
    const Row& row = rows_[line.row];
    const std::string id = std::to_string(line.row);
    if (line.step == 0) {
      text += "I\t" + id + "\t" + std::to_string(row.number) + "\t" + std::to_string(row.thread) + "\n";
      const std::string words = label ? label(row.pc) : "";
      text += "L\t" + id + "\t0\t" + hexadecimal(row.pc) + (words.empty() ? "" : ": " + words) + "\n";
    } else {
      text += "E\t" + id + "\t0\t" + stages[line.step - 1] + "\n";
    }
    if (line.step < 4) {
      text += "S\t" + id + "\t0\t" + stages[line.step] + "\n";
    } else {
      text += "R\t" + id + "\t" + id + "\t0\n";
    }
  }
  return text;
}

}  // namespace manyscale::cpu
