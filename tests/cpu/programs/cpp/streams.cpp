// SPDX-License-Identifier: Apache-2.0
// Streams: formatting, parsing, files.
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "programs.hpp"

int run_streams(int, char**) {
  std::cout << std::hex << std::showbase << 48879 << ' ' << std::dec << std::setw(8) << std::setfill('*')
            << 42 << ' ' << std::scientific << std::setprecision(3) << 12345.678 << ' ' << std::fixed << 2.5
            << ' ' << std::boolalpha << true << std::endl;
  std::string word;
  long number = 0, total = 0;
  double real = 0, product = 1;
  while (std::cin >> word >> number >> real) {
    total += number * static_cast<long>(word.size());
    product *= real;
  }
  std::cout << total << ' ' << product << ' ' << std::cin.eof() << '\n';
  {
    std::ofstream file("table.txt");
    for (int i = 0; i < 100; ++i) file << i << ' ' << i * 0.125 << '\n';
  }
  std::ifstream file("table.txt");
  double sum = 0;
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::istringstream parts(line);
    int index = 0;
    double value = 0;
    parts >> index >> value;
    sum += index * value;
  }
  std::cout << lines << ' ' << sum << ' ' << std::ifstream("absent.txt").is_open() << '\n';
  std::remove("table.txt");
  std::ostringstream text;
  text << std::left << std::setw(6) << "ab" << '|' << std::internal << std::showpos << std::setw(6) << 12
       << '|';
  std::cout << text.str() << std::endl;
  std::cerr << "to standard error\n";
  return 0;
}
