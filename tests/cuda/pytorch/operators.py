# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch on a GPU and on the CPU: run by the Python that has PyTorch, with the groups to compare.

Prints one line for each operator that differs or fails, and at the end how many agreed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as nn

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]
R = torch.randn


def reductions() -> Iterator[Case]:
    for count in (1, 7, 1000, 4097, 100_000):
        yield f"ones.sum {count}", torch.sum, (torch.ones(count),)
        yield f"sum {count}", lambda t: t.double().sum(), (R(count),)
    x = R(64, 300)
    for dim in (0, 1):
        for name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "std", "var", "norm", "logsumexp"):
            yield f"{name} {dim}", lambda t, name=name, dim=dim: getattr(torch, name)(t, dim=dim), (x,)
        yield f"any {dim}", lambda t, dim=dim: (t > 0).any(dim), (x,)
        yield f"cumsum {dim}", lambda t, dim=dim: t.double().cumsum(dim), (x,)
    yield "max", lambda t: t.max(), (x,)
    yield "var", lambda t: t.var(), (x,)
    yield "cummax", lambda t: t.cummax(1), (x,)
    yield "sum of integers", lambda t: (t * 10).int().sum(), (x,)
    yield "count_nonzero", lambda t: (t > 0).count_nonzero(), (x,)


def elementwise() -> Iterator[Case]:
    x, y = R(1000), R(1000)
    for name in [
        "abs",
        "exp",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "erf",
        "reciprocal",
        "floor",
        "round",
        "sign",
        "relu",
        "expm1",
        "atan",
        "square",
        "tan",
        "exp2",
    ]:
        yield name, getattr(torch, name), (x,)
    for name in ["log1p", "sqrt", "rsqrt", "lgamma", "digamma", "log", "log2"]:
        yield name, getattr(torch, name), (x.abs() + 0.1,)
    for name in ["add", "sub", "mul", "div", "atan2", "fmod", "remainder", "maximum", "eq", "lt"]:
        yield name, getattr(torch, name), (x, y)
    yield "pow", torch.pow, (x.abs() + 0.1, y)
    yield "where", lambda a, b: torch.where(a > b, a, b), (x, y)
    yield "lerp", lambda a, b: torch.lerp(a, b, 0.3), (x, y)
    yield "broadcast", lambda a, b: a[:40, None] + b[None, :50], (x, y)
    yield "transposed", lambda a: a.view(20, 50).t() * 2 + 1, (x,)
    yield "half", lambda a: a.half() * 2, (x,)
    yield "bfloat16", lambda a: a.bfloat16() * 2, (x,)
    yield "integers", lambda a: (a * 100).long() % 7, (x,)
    yield "complex", lambda a, b: torch.complex(a, b) * torch.complex(b, a), (x, y)  # compiled at run time
    yield "arange", lambda a: torch.arange(1000, device=a.device) * 2, (x,)


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_first(first: Any, *others: Any) -> Any:
        first = first.detach().requires_grad_()
        function(first, *others).sum().backward()
        return first.grad

    return of_first


def layers() -> Iterator[Case]:
    x, image = R(16, 128), R(2, 4, 16, 16)
    classes = torch.randint(0, 128, (16,))
    yield "softmax", lambda t: nn.softmax(t, -1), (x,)
    yield "softmax of long rows", lambda t: nn.softmax(t, -1), (R(4, 5000),)
    yield "log_softmax", lambda t: nn.log_softmax(t, 0), (x,)
    yield "layer_norm", lambda t, w, b: nn.layer_norm(t, (128,), w, b), (x, R(128), R(128))
    yield "rms_norm", lambda t, w: nn.rms_norm(t, (128,), w), (x, R(128))
    yield "group_norm", lambda t: nn.group_norm(t, 2), (image,)
    for function in (nn.gelu, nn.silu, nn.leaky_relu, nn.softplus):
        yield function.__name__, function, (x,)
    yield "embedding", nn.embedding, (torch.randint(0, 50, (10, 20)), R(50, 32))
    yield "cross_entropy", nn.cross_entropy, (x, classes)
    yield "mse_loss", nn.mse_loss, (x, R(16, 128))
    yield "max_pool2d", lambda t: nn.max_pool2d(t, 2), (image,)
    yield "avg_pool2d", lambda t: nn.avg_pool2d(t, 2), (image,)
    yield "interpolate", lambda t: nn.interpolate(t, scale_factor=2, mode="bilinear"), (image,)
    yield "pad", lambda t: nn.pad(t, (1, 2), mode="reflect"), (x,)
    yield "gradient of gelu", gradient(nn.gelu), (x,)
    yield "gradient of cross_entropy", gradient(nn.cross_entropy), (x, classes)
    yield "gradient of max_pool2d", gradient(lambda t: nn.max_pool2d(t, 2)), (image,)
    weights = torch.arange(128.0)
    yield "gradient of softmax", gradient(lambda t, w: nn.softmax(t, -1) * w), (x, weights)


def indices() -> Iterator[Case]:
    x, i = R(30, 40), torch.randperm(30)[:20]
    ones = torch.ones(20, 40)
    yield "index", lambda t, i: t[i], (x, i)
    yield "gather", lambda t, i: t.gather(0, i[:, None].expand(20, 40)), (x, i)
    yield "scatter_add", lambda t, i, o: t.scatter_add(0, i[:, None].expand(20, 40), o), (x, i, ones)
    yield "index_add", lambda t, i, o: t.index_add(0, i, o), (x, i, ones)
    yield "masked_select", lambda t: t[t > 0], (x,)
    yield "nonzero", lambda t: (t > 0).nonzero(), (x,)
    yield "cat", lambda a: torch.cat([a, a], 1), (x,)
    yield "repeat_interleave", lambda a: a.repeat_interleave(3, 0), (x,)
    yield "bincount", lambda t: t.bincount(), (torch.randint(0, 50, (1000,)),)
    yield "sort", lambda t: tuple(t.sort(1)), (x,)
    yield "sort of many", lambda t: tuple(t.sort()), (torch.randperm(3000).float(),)
    yield "stable sort", lambda t: tuple(t.sort(stable=True)), (torch.randint(0, 100, (2000,)),)
    yield "topk", lambda t: tuple(t.topk(5, 1)), (x,)
    yield "unique", lambda t: t.unique(), (torch.randint(0, 50, (1000,)),)
    yield "tril", lambda t: t.tril(), (x,)
    yield "contiguous", lambda t: t.view(5, 6, 40).permute(2, 0, 1).contiguous(), (x,)


def transforms() -> Iterator[Case]:
    """cuFFT; single precision in units of the largest element."""
    for count in (8, 64, 100, 997, 1000, 4096, 32768):
        x = R(3, count, dtype=torch.complex64)
        yield f"fft {count}", lambda t: torch.fft.fft(t) / t.shape[-1], (x,)
    x = R(4, 256, dtype=torch.float64)
    yield "rfft", torch.fft.rfft, (x,)
    yield "irfft", lambda t: torch.fft.irfft(torch.fft.rfft(t)), (x,)
    yield "fft2", torch.fft.fft2, (R(32, 48, dtype=torch.complex128),)
    yield "ifftn", torch.fft.ifftn, (R(8, 12, 16, dtype=torch.complex128),)


def linear_algebra() -> Iterator[Case]:
    """cuSOLVER and the solvers of cuBLAS."""
    for count in (3, 16, 64):
        x = R(count, count, dtype=torch.float64) + count * torch.eye(count)
        yield f"solve {count}", torch.linalg.solve, (x, R(count, 2, dtype=torch.float64))
    x = R(32, 32, dtype=torch.float64)
    definite = x @ x.T + 32 * torch.eye(32, dtype=torch.float64)
    yield (
        "solve_triangular",
        lambda t, b: torch.linalg.solve_triangular(t.tril(), b, upper=False),
        (definite, x),
    )
    yield "cholesky", torch.linalg.cholesky, (definite,)
    yield "inv", torch.linalg.inv, (definite,)
    yield "det", torch.linalg.det, (x,)
    yield "qr", lambda t: torch.matmul(*torch.linalg.qr(t)), (x,)
    yield "eigvalsh", torch.linalg.eigvalsh, (definite,)
    yield "svdvals", torch.linalg.svdvals, (x,)


def sparse() -> Iterator[Case]:
    """cuSPARSE."""
    x, y = (R(*shape) * (torch.rand(*shape) < 0.1) for shape in ((40, 50), (50, 30)))
    dense = R(50, 7)
    yield "coordinates times dense", lambda a, b: torch.sparse.mm(a.to_sparse(), b), (x, dense)
    yield "rows times dense", lambda a, b: a.to_sparse_csr() @ b, (x, dense)
    yield "rows times vector", lambda a, b: a.to_sparse_csr() @ b[:, 0], (x, dense)
    yield "rows times rows", lambda a, b: (a.to_sparse_csr() @ b.to_sparse_csr()).to_dense(), (x, y)


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "reductions": reductions,
    "elementwise": elementwise,
    "layers": layers,
    "indices": indices,
    "transforms": transforms,
    "linear_algebra": linear_algebra,
    "sparse": sparse,
}


def moved(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value


def agree(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Both within the tolerances that PyTorch has for the type."""
    expected = function(*arguments)
    found = function(*(moved(argument) for argument in arguments))
    for one, other in zip(
        expected if isinstance(expected, tuple) else (expected,),
        found if isinstance(found, tuple) else (found,),
        strict=True,
    ):
        torch.testing.assert_close(other.cpu(), one)


def main() -> None:
    torch.manual_seed(0)
    agreed = failed = 0
    for group in sys.argv[1:]:
        for name, function, arguments in GROUPS[group]():
            try:
                agree(function, arguments)
                agreed += 1
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print(f"{group}: {name}: {error}")
    print(f"{agreed} agree, {failed} do not")


if __name__ == "__main__":
    main()
