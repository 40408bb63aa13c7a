# SPDX-License-Identifier: Apache-2.0
"""Small models of PyTorch, trained for some steps on a GPU and on the CPU: losses and weights are compared.

Run by the Python that has PyTorch, with the names of models.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

STEPS = 2


class Attention(nn.Module):
    """A block of a GPT: causal attention of four heads and a layer of four times the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.queries, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.queries(self.norms[0](x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.layers(self.norms[1](x))


def perceptron() -> tuple[nn.Module, Any, Any]:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.randn(16, 20), torch.randint(0, 10, (16,))


def convolutional() -> tuple[nn.Module, Any, Any]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 8 * 8, 10),
    )
    return model, torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))


def transformer() -> tuple[nn.Module, Any, Any]:
    model = nn.Sequential(nn.Embedding(50, 32), Attention(32), nn.LayerNorm(32), nn.Linear(32, 50))
    return model, torch.randint(0, 50, (2, 16)), torch.randint(0, 50, (2, 16))


def recurrent() -> tuple[nn.Module, Any, Any]:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.out = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.out(self.cells(x)[0][:, -1])

    return Last(), torch.randn(4, 6, 8), torch.randint(0, 5, (4,))


MODELS: dict[str, Callable[[], tuple[nn.Module, Any, Any]]] = {
    "perceptron": perceptron,
    "convolutional": convolutional,
    "transformer": transformer,
    "recurrent": recurrent,
}


def train(name: str, model: nn.Module, given: Any, wanted: Any) -> list[float]:
    # AdamW divides gradients by their size, so those that are 0 but for rounding (of the keys' bias) would differ.
    if name == "perceptron":
        optimiser: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        loss = functional.cross_entropy(model(given).flatten(0, -2), wanted.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    # By default cuDNN rounds operands to TF32.
    torch.backends.cudnn.allow_tf32 = False
    for name in sys.argv[1:]:
        torch.manual_seed(0)
        model, given, wanted = MODELS[name]()
        there = copy.deepcopy(model).cuda()
        expected = train(name, model, given, wanted)
        found = train(name, there, given.cuda(), wanted.cuda())
        torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-4)
        for one, other in zip(model.parameters(), there.parameters(), strict=True):
            torch.testing.assert_close(other.cpu(), one, rtol=1e-3, atol=1e-4)
        print(f"{name}: {STEPS} steps agree, losses {' '.join(f'{loss:.4f}' for loss in found)}")


if __name__ == "__main__":
    main()
