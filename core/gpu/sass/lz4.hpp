// SPDX-License-Identifier: Apache-2.0
// Blocks of LZ4, in which fat binaries keep their images: runs of literals, each followed by a copy of
// earlier output.
#pragma once
#include <cstddef>
#include <span>
#include <stdexcept>

namespace manyscale::sass {

// The block is broken: what() says how.
struct Lz4Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Unpacks a block into `out`, which has as many bytes as the block should give.
void unpack_lz4(std::span<const std::byte> block, std::span<std::byte> out);

}  // namespace manyscale::sass
