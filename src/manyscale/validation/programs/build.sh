#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds micro.elf from micro.c; the file is kept, so that only a change of the source needs a cross-compiler.
cd "$(dirname "$0")" && exec riscv64-linux-gnu-gcc -O2 -march=rv64gc -mabi=lp64d -static -nostdlib -ffreestanding \
  -fno-builtin -fno-stack-protector -fno-tree-loop-distribute-patterns -Wall -Wextra -Wl,--build-id=none \
  -I../../../../runtime -s micro.c -o micro.elf
