// SPDX-License-Identifier: Apache-2.0
// Virtual functions, multiple inheritance, casts that ask at run time, variants, closures, static objects.
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>

#include "programs.hpp"

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Named {
  std::string name;
  virtual ~Named() = default;
  virtual std::string label() const { return name; }
};
struct Circle : Shape, Named {
  double radius;
  explicit Circle(double r) : radius(r) { name = "circle"; }
  double area() const override { return 3.25 * radius * radius; }
};
struct Square : virtual Named, Shape {
  double side;
  explicit Square(double s) : side(s) { name = "square"; }
  double area() const override { return side * side; }
  std::string label() const override { return name + "!"; }
};

struct Counted {
  static inline int built = 0;
  Counted() { ++built; }
};
Counted global_one, global_two;

template <int n>
constexpr long fibonacci = fibonacci<n - 1> + fibonacci<n - 2>;
template <>
constexpr long fibonacci<0> = 0;
template <>
constexpr long fibonacci<1> = 1;

}  // namespace

int run_objects(int, char**) {
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 50; ++i) {
    if (i % 2)
      shapes.push_back(std::make_unique<Circle>(i * 0.5));
    else
      shapes.push_back(std::make_unique<Square>(i));
  }
  double area = 0;
  std::size_t letters = 0;
  int circles = 0;
  for (const auto& each : shapes) {
    area += each->area();
    if (const auto* named = dynamic_cast<const Named*>(each.get())) letters += named->label().size();
    circles += typeid(*each) == typeid(Circle);
  }
  std::printf("area %g letters %zu circles %d\n", area, letters, circles);
  std::variant<int, double, std::string> value = 3;
  std::string seen;
  for (int i = 0; i < 6; ++i) {
    seen += std::to_string(value.index());
    if (i % 3 == 0)
      value = 2.5 * i;
    else if (i % 3 == 1)
      value = std::string(static_cast<std::size_t>(i), 'x');
    else
      value = i;
  }
  std::printf("variant %s\n", seen.c_str());
  std::vector<std::function<long(long)>> functions;
  for (int i = 0; i < 5; ++i)
    functions.emplace_back(
        [i, weight = std::to_string(i * 11)](long x) { return x * i + static_cast<long>(weight.size()); });
  long result = 1;
  for (const auto& each : functions) result = each(result) + 1;
  std::optional<long> maybe = result > 10 ? std::optional(result) : std::nullopt;
  std::printf("functions %ld optional %ld\n", result, maybe.value_or(-1));
  std::printf("static %d fibonacci %ld\n", Counted::built, fibonacci<80>);
  return 0;
}
