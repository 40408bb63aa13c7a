# SPDX-License-Identifier: Apache-2.0
"""Ways of PyTorch and Triton to bring kernels to a GPU: run by the Python that has PyTorch, with the program to run."""

from __future__ import annotations

import sys

import torch


def compiled() -> None:
    """`torch.compile`: Inductor's kernels, which Triton makes."""
    x, y = torch.randn(64, 96), torch.randn(96, 32)

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.softmax(a @ b, -1).sum(0) + 1

    found = torch.compile(function)(x.cuda(), y.cuda())
    torch.testing.assert_close(found.cpu(), function(x, y))


def captured() -> None:
    """A CUDA graph, replayed with other data."""
    x, weights = torch.zeros(32, 32, device="cuda"), torch.randn(32, 32)
    held = weights.cuda()

    def function(t: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(t @ w) + 1

    function(x, held)  # cuBLAS allocates its workspace
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x, held)
    for _ in range(2):
        given = torch.randn(32, 32)
        x.copy_(given)
        graph.replay()
        torch.testing.assert_close(result.cpu(), function(given, weights))


def launched_by_triton() -> None:
    import triton
    from triton import language as tl

    @triton.jit
    def add(x, y, out, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * block + tl.arange(0, block)
        inside = at < count
        tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

    x, y = torch.randn(1000), torch.randn(1000)
    out = torch.empty(1000, device="cuda")
    add[(triton.cdiv(1000, 256),)](x.cuda(), y.cuda(), out, 1000, block=256)
    torch.testing.assert_close(out.cpu(), x + y)


def in_a_segment() -> None:
    """With `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: tensors over several mappings, and again after they
    were given back."""
    for count in (1000, 3_000_000, 5_000_000):
        ones = torch.ones(count, device="cuda")
        assert ones.sum().item() == count
        assert all(segment["is_expandable"] for segment in torch.cuda.memory_snapshot())
        del ones
        torch.cuda.empty_cache()


if __name__ == "__main__":
    torch.manual_seed(0)
    {each.__name__: each for each in (compiled, captured, launched_by_triton, in_a_segment)}[sys.argv[1]]()
    print(f"{sys.argv[1]}: agrees")
