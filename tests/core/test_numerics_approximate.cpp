// SPDX-License-Identifier: Apache-2.0
// Approximate functions against 64 bits of precision.
#include "gpu/exec/numerics/approximate.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "test_numerics.hpp"

using namespace manyscale::gpu;

namespace {

std::uint64_t digest = 0;

template <class Approximate, class Exact>
double largest_error(float from, float to, Approximate approximate, Exact exact) {
  double worst = 0;
  const std::uint32_t last = bits_of(to);
  const std::uint32_t step = 1 + (last - bits_of(from)) / 150'000;
  for (std::uint32_t bits = bits_of(from); bits < last && bits <= last - step; bits += step) {
    for (const float x : {from_bits<float>(bits), -from_bits<float>(bits)}) {
      const float got = approximate(x);
      digest = (digest ^ bits_of(got)) * 0x100000001b3;
      const long double reference = exact(static_cast<long double>(x));
      if (std::isnan(reference)) {
        if (bits_of(got) != canonical_nan_f32) return 1e9;
        continue;
      }
      const auto near = static_cast<float>(reference);
      if (std::isinf(near) || std::isinf(got)) {
        if (near != got) return 1e9;
        continue;
      }
      int exponent = 0;
      std::frexp(near, &exponent);
      const int unit = exponent - 24 > -149 ? exponent - 24 : -149;
      const auto error = static_cast<double>(std::fabs(reference - got) * std::ldexp(1.0L, -unit));
      if (error > worst) worst = error;
    }
  }
  return worst;
}

template <class Approximate, class Exact>
void check_error(const char* what, Approximate approximate, Exact exact) {
  const double all = largest_error(0x1p-149f, 0x1.fffffep127f, approximate, exact);
  const double common = largest_error(0x1p-10f, 0x1p8f, approximate, exact);
  const double worst = all > common ? all : common;
  // Half an ulp is lost when the result is rounded.
  check(worst < 0.501, what, static_cast<long>(worst * 1000));
}

TEST(approximations_are_within_one_ulp) {
  check_error("ex2", [](float x) { return ex2_approx(x); }, [](long double x) { return std::exp2(x); });
  check_error("lg2", [](float x) { return lg2_approx(x); }, [](long double x) { return std::log2(x); });
  check_error("sin", [](float x) { return sin_approx(x); }, [](long double x) { return std::sin(x); });
  check_error("cos", [](float x) { return cos_approx(x); }, [](long double x) { return std::cos(x); });
  check_error("tanh", [](float x) { return tanh_approx(x); }, [](long double x) { return std::tanh(x); });
  check_error("rcp", [](float x) { return rcp_approx(x); }, [](long double x) { return 1 / x; });
  check_error("sqrt", [](float x) { return sqrt_approx(x); }, [](long double x) { return std::sqrt(x); });
  check_error(
      "rsqrt", [](float x) { return rsqrt_approx(x); }, [](long double x) { return 1 / std::sqrt(x); });
  check(digest == 0xa484e5b4a189a10b, "the same results on every host", digest);
}

TEST(approximations_have_the_documented_special_values) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = from_bits<float>(0xff812345);
  auto is = [](float got, float expected) {
    return bits_of(got) == (std::isnan(expected) ? canonical_nan_f32 : bits_of(expected));
  };
  check(is(ex2_approx(-infinity), 0.0f) && is(ex2_approx(-0.0f), 1) && is(ex2_approx(infinity), infinity) &&
            is(ex2_approx(nan), nan) && is(ex2_approx(-149.0f), 0x1p-149f) &&
            is(ex2_approx(127.0f), 0x1p127f),
        "ex2");
  check(is(lg2_approx(-infinity), nan) && is(lg2_approx(-1.0f), nan) && is(lg2_approx(-0.0f), -infinity) &&
            is(lg2_approx(0.0f), -infinity) && is(lg2_approx(infinity), infinity) &&
            is(lg2_approx(nan), nan) && is(lg2_approx(1.0f), 0.0f) && is(lg2_approx(0x1p-149f), -149.0f),
        "lg2");
  check(is(sin_approx(infinity), nan) && is(sin_approx(-0.0f), -0.0f) && is(sin_approx(nan), nan), "sin");
  check(is(cos_approx(-infinity), nan) && is(cos_approx(-0.0f), 1.0f) && is(cos_approx(nan), nan), "cos");
  check(is(tanh_approx(-infinity), -1.0f) && is(tanh_approx(-0.0f), -0.0f) && is(tanh_approx(nan), nan),
        "tanh");
  check(is(rcp_approx(-infinity), -0.0f) && is(rcp_approx(-0.0f), -infinity) && is(rcp_approx(nan), nan),
        "rcp");
  check(is(sqrt_approx(-1.0f), nan) && is(sqrt_approx(-0.0f), -0.0f) && is(sqrt_approx(infinity), infinity),
        "sqrt");
  check(
      is(rsqrt_approx(-1.0f), nan) && is(rsqrt_approx(-0.0f), -infinity) && is(rsqrt_approx(infinity), 0.0f),
      "rsqrt");
  check(is(flush(rsqrt_approx(flush(-0x1p-140f))), -infinity), "rsqrt.ftz of a negative subnormal");
  check(is(div_approx(-3.0f, 0x1.8p126f), -0.0f) && is(div_approx(infinity, 0x1p127f), nan) &&
            is(div_approx(3.0f, 0x1p126f), 0x1.8p-125f) && is(div_approx(1.0f, infinity), 0.0f),
        "div.approx");
  check(is(div_full(0x1p127f, 0x1p127f), 1.0f), "div.full");
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const F16 h{static_cast<std::uint16_t>(bits)};
    const double x = to_f64(h);
    if (is_nan(h)) {
      check(ex2_approx(h).bits == 0x7fff && tanh_approx(h).bits == 0x7fff, "NaN of f16");
    } else if (std::fabs(x) < 14) {
      check(std::fabs(to_f64(ex2_approx(h)) / std::exp2(x) - 1) < 0x1p-9, "ex2.f16", bits);
      check(std::fabs(to_f64(tanh_approx(h)) - std::tanh(x)) < 0x1p-10, "tanh.f16", bits);
    }
  }
  check(ex2_approx(Bf16{0xff80}).bits == 0 && tanh_approx(Bf16{0x7f80}).bits == 0x3f80, "bf16");
}

TEST(gross_approximations_of_f64_see_the_upper_word) {
  const double infinity = std::numeric_limits<double>::infinity();
  constexpr std::uint64_t nan = canonical_nan_f64_approximate;
  check(bits_of(rcp_approx_ftz(from_bits<double>(0xfff8000000000000))) == nan, "rcp of NaN");
  check(bits_of(rcp_approx_ftz(from_bits<double>(0x7ff0000000000001))) == 0, "rcp of an infinite upper word");
  check(bits_of(rcp_approx_ftz(-infinity)) == sign_bit<double>, "rcp of -infinity");
  check(rcp_approx_ftz(-0x1p-1060) == -infinity && rcp_approx_ftz(0.0) == infinity, "rcp of what is flushed");
  check(bits_of(rcp_approx_ftz(-0x1p1023)) == sign_bit<double>, "a subnormal reciprocal is flushed");
  check(bits_of(rsqrt_approx_ftz(-1.0)) == nan && rsqrt_approx_ftz(-0x1p-1060) == -infinity,
        "rsqrt below zero");
  check(bits_of(rsqrt_approx_ftz(infinity)) == 0 && rsqrt_approx_ftz(4.0) == 0.5, "rsqrt");
  for (int i = 0; i < 20'000; ++i) {
    const double x =
        std::ldexp(1 + std::ldexp(static_cast<double>(random_bits() >> 12), -52), i % 2000 - 1000);
    const double reciprocal = rcp_approx_ftz(x), root = rsqrt_approx_ftz(x);
    check((bits_of(reciprocal) << 32) == 0 && std::fabs(reciprocal * x - 1) < 0x1p-19, "rcp.approx.ftz.f64");
    check((bits_of(root) << 32) == 0 && std::fabs(root * std::sqrt(x) - 1) < 0x1p-19, "rsqrt.approx.ftz.f64");
    check(std::fabs(rsqrt_approx(x) * std::sqrt(x) - 1) < 0x1p-51, "rsqrt.approx.f64");
  }
}

}  // namespace
