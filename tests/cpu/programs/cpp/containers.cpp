// SPDX-License-Identifier: Apache-2.0
// Containers and algorithms.
#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "programs.hpp"

int run_containers(int argc, char** argv) {
  const long count = number_argument(argc, argv, 1, 800);
  std::uint64_t state = 17, sum = 0;
  std::map<std::uint64_t, std::string> ordered;
  std::unordered_map<std::string, int> hashed;
  std::vector<std::uint64_t> values;
  for (long i = 0; i < count; ++i) {
    const std::uint64_t value = next_random(&state) % 5000;
    values.push_back(value);
    ordered.emplace(value, "value " + std::to_string(value));
    ++hashed[std::to_string(value % 100)];
  }
  for (const auto& [key, text] : ordered) sum = mixed(sum, key + text.size());
  std::printf("map %zu %016llx\n", ordered.size(), static_cast<unsigned long long>(sum));
  long entries = 0, largest = 0;
  for (const auto& [text, times] : hashed) entries += times, largest = std::max<long>(largest, times);
  std::printf("hash %zu %ld %ld\n", hashed.size(), entries, largest);
  std::sort(values.begin(), values.end(), std::greater<>());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::printf("vector %zu %llu %d\n", values.size(), static_cast<unsigned long long>(values.front()),
              std::is_sorted(values.rbegin(), values.rend()));
  std::deque<int> queue;
  for (int i = 0; i < 500; ++i) {
    if (i % 3)
      queue.push_back(i);
    else
      queue.push_front(-i);
    if (i % 5 == 0) queue.pop_back();
  }
  std::printf("deque %zu %d\n", queue.size(), std::accumulate(queue.begin(), queue.end(), 0));
  std::list<int> list(queue.begin(), queue.end());
  list.sort();
  list.remove_if([](int x) { return x % 2 == 0; });
  list.reverse();
  std::printf("list %zu %d %d\n", list.size(), list.front(), list.back());
  std::priority_queue<std::tuple<double, int>> heap;
  for (int i = 0; i < 300; ++i) heap.emplace(next_fraction(&state), i);
  for (int i = 0; i < 150; ++i) heap.pop();
  std::printf("heap %d\n", std::get<1>(heap.top()));
  std::set<std::string> words;
  std::string text = "in the beginning there was a word and the word was long";
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find(' ', at), text.size());
    words.insert(text.substr(at, end - at));
  }
  std::string joined;
  for (const std::string& each : words) joined += each + ".";
  std::printf("set %s\n", joined.c_str());
  std::array<int, 8> permutation{0, 1, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < 1000; ++i) std::next_permutation(permutation.begin(), permutation.end());
  for (int each : permutation) std::printf("%d", each);
  std::printf("\n");
  return 0;
}
