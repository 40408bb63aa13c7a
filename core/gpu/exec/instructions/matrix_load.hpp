// SPDX-License-Identifier: Apache-2.0
// Matrices between memory and the registers of a warp, and what the decoders of all matrix instructions
// share.
#pragma once
#include <vector>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/fragments.hpp"

namespace manyscale::gpu {

enum class MatrixLayout : std::uint8_t { row, column };

// Registers that wmma lists for A and for B of .f16 in every shape: smaller matrices are there more than
// once.
inline constexpr unsigned kWmmaHalfRegisters = 8;

// The shape (m16n8k16) and the layouts (row, col) among the modifiers; Unsupported if they are missing.
MatrixShape accept_shape(Builder& builder);
std::vector<MatrixLayout> accept_layouts(Builder& builder, unsigned count);

// The slots of {a, b, …}, which must be `count` registers; elements of less than 32 bits are packed in 32.
std::vector<Slot> fragment_sources(Builder& builder, const ptx::Operand& operand, ptx::Type type,
                                   unsigned count);
std::vector<Slot> fragment_destinations(Builder& builder, const ptx::Operand& operand, ptx::Type type,
                                        unsigned count);

// Handlers of ldmatrix and stmatrix, whose registers are listed, and of movmatrix, from src[0] to dst. Rows
// have so many bytes.
inline constexpr unsigned kMatrixRowBytes = 16;
Handler row_access(bool loads, bool transposed);
void transpose_register(Warp& warp, const Op& op);

void decode_wmma_load(Builder& builder);
void decode_wmma_store(Builder& builder);
void decode_ldmatrix(Builder& builder);
void decode_stmatrix(Builder& builder);
void decode_movmatrix(Builder& builder);

}  // namespace manyscale::gpu
