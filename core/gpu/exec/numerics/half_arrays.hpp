// SPDX-License-Identifier: Apache-2.0
// Conversions of many numbers between f32 and the formats of 16 bits, by instructions of the host where there
// are some. The numbers are those of half.hpp; a NaN of f16 may keep its payload in f32.
#pragma once

#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/half.hpp"

namespace manyscale::gpu {

/// `to_f32` of `count` numbers, a multiple of 8.
template <class T>
inline void widen(const T* source, float* result, unsigned count) {
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, F16>) {
    for (unsigned i = 0; i < count; i += 8) {
      const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
      _mm256_storeu_ps(result + i, _mm256_cvtph_ps(halves));
    }
    return;
  }
#endif
  for (unsigned i = 0; i < count; ++i) result[i] = to_f32(source[i]);
}

/// `to_f16` of `count` numbers, a multiple of 8.
inline void narrow(const float* source, F16* result, unsigned count) {
#if defined(__F16C__)
  // The payload of a NaN is cut, so that of the canonical f32 becomes the canonical one of f16.
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(canonical_nan_f32));
  for (unsigned i = 0; i < count; i += 8) {
    const __m256 value = _mm256_loadu_ps(source + i);
    const __m256 number = _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m128i halves = _mm256_cvtps_ph(number, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(result + i), halves);
  }
#else
  for (unsigned i = 0; i < count; ++i) result[i] = to_f16(source[i]);
#endif
}

/// `to_bf16` of `count` numbers.
inline void narrow(const float* source, Bf16* result, unsigned count) {
  for (unsigned i = 0; i < count; ++i) result[i].bits = to_bf16(source[i]).bits;
}

}  // namespace manyscale::gpu
