#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the samples from their sources; the files are kept, so that only a change of a source needs a cross-compiler.
cd "$(dirname "$0")" || exit 1
riscv64-linux-gnu-gcc -O2 -g1 -gz -fopenmp -static -ffunction-sections -Wl,--gc-sections -Wl,--build-id=none \
  -Wall -Wextra -I../../../../runtime -ffile-prefix-map="$PWD"=. heat.c -lm -o heat && xz -9e -k -f heat && rm heat
