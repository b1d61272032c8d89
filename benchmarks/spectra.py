"""Spectra of convolutions beside the recipes that one writes in PyTorch.

    python benchmarks/spectra.py

One thread, processor time, in turn in one process, medians, float64 throughout. Bars: the full
circular spectrum of a 3 x 3 convolution from 64 to 64 channels on 32 x 32 pixels takes no longer
than a batched ``torch.linalg.svdvals`` of the FFT blocks, half of them by symmetry, and at most 0.6
times the naive 1,024 decompositions; strides and groups likewise. Of real networks the time of
``effective_rank`` is shown, and by how much zero padding moves the largest singular value.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from bars import bar, threads
from networks import SHARED, SUBJECTS
from torch import Tensor, nn

from inscape.models import mobilenet_v2, resnet18
from inscape.spectra import conv_spectrum, effective_rank
from inscape.spectra.convolution import Convolution
from inscape.spectra.fourier_spectrum import fourier_spectrum


def taken(rounds: int, **works: Callable[[], object]) -> dict[str, float]:
    """Return the median processor time of each work, all run in turn in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(-1, rounds):
        for name in works if turn % 2 == 0 else reversed(works):
            begin = time.process_time()
            works[name]()
            if turn >= 0:
                seconds[name].append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


def circular(outputs: int, inputs: int, size: int, stride: int = 1) -> tuple[Convolution, Tensor]:
    draw = torch.Generator().manual_seed(0)
    layer = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False, padding_mode="circular").double()
    layer.weight.data.normal_(generator=draw)
    return Convolution.of(layer, (size, size)), layer.weight.detach()


def fft_blocks(weight: Tensor, size: int, *, half: bool) -> Tensor:
    transform = torch.fft.rfft2 if half else torch.fft.fft2
    return torch.linalg.svdvals(transform(weight, (size, size)).permute(2, 3, 0, 1))


def aliased(weight: Tensor, size: int, stride: int) -> Tensor:
    """The recipe for a stride: the blocks of aliased frequencies side by side, all of them."""
    symbols = torch.fft.fft2(weight, (size, size)) / stride
    cells = size // stride
    parts = [
        symbols[..., a * cells : (a + 1) * cells, b * cells : (b + 1) * cells]
        for a in range(stride)
        for b in range(stride)
    ]
    return torch.linalg.svdvals(torch.cat(parts, 1).permute(2, 3, 0, 1))


def full_spectra(rounds: int) -> None:
    conv, weight = circular(64, 64, 32)
    values = fourier_spectrum(conv).expanded()
    peer = fft_blocks(weight, 32, half=False).flatten().sort(descending=True).values
    assert len(values) == 65_536
    print(f"64 to 64 on 32 x 32: largest difference {float((values - peer).abs().max()):.1e}")
    times = taken(
        rounds,
        ours=lambda: fourier_spectrum(conv),
        half=lambda: fft_blocks(weight, 32, half=True),
        naive=lambda: fft_blocks(weight, 32, half=False),
    )
    name = "spectrum of 64 to 64, 3x3, on 32x32: time beside"
    bar(f"{name} svdvals of half the FFT blocks", times["ours"] / times["half"], at_most=1.0)
    bar(f"{name} all 1,024 blocks", times["ours"] / times["naive"], at_most=0.6)
    conv, weight = circular(64, 32, 32, stride=2)
    values = fourier_spectrum(conv).expanded()
    peer = aliased(weight, 32, 2).flatten().sort(descending=True).values
    print(f"stride 2: largest difference {float((values - peer).abs().max()):.1e}")
    times = taken(
        rounds, ours=lambda: fourier_spectrum(conv), aliased=lambda: aliased(weight, 32, 2)
    )
    bar("the same, 32 to 64 of stride 2: time beside all", times["ours"] / times["aliased"],
        at_most=0.6)  # fmt: skip


def networks() -> None:
    image = torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    mobile = mobilenet_v2()
    path = SHARED / "weights" / "mobilenet_v2-b0353104.pth"
    if path.exists():
        mobile.load_state_dict(torch.load(path))
    begin = time.process_time()
    result = effective_rank(mobile, image)
    bar("effective_rank of MobileNetV2 at 224x224", time.process_time() - begin, unit="s")
    print(f"    {result.summary()}; {result.summary().basis}")
    begin = time.process_time()
    effective_rank(resnet18(width=16), image[..., :32, :32])
    bar("effective_rank of ResNet-18, width 16", time.process_time() - begin, unit="s")
    for name in ("Keras CNN",):
        try:
            model, x, _ = SUBJECTS[name]()
        except (OSError, ImportError) as error:
            print(f"{name} is left out: {error}")
            continue
        begin = time.process_time()
        spectrum = conv_spectrum(model, x[:1])
        bar(f"conv_spectrum of the {name}", time.process_time() - begin, unit="s")
        for row in spectrum.rows():
            print(
                f"    {row['map']}: {row['method']}, {row['singular_values']:,} values, largest "
                f"{row['largest']:.4f} within {row['largest_residual']:.0e}, circular "
                f"{row['circular_largest']:.4f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with threads(1):
        full_spectra(options.rounds)
        networks()


if __name__ == "__main__":
    main()
