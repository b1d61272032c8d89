"""How fast Gaussian processes are, beside scikit-learn.

    python benchmarks/gaussian_process.py
    python benchmarks/gaussian_process.py --threads 1 2

Wall time, float64, points of 10 inputs, in turn in one process, medians; both sides with the same
number of threads, of torch and of every BLAS. Both maximise the same likelihood by L-BFGS-B
from the same first values and within the same bounds, each with its own rule for stopping, and the
likelihoods reached are compared. Bar: at least as fast as scikit-learn in each of four jobs: fixed
settings, with means and deviations at as many other points; amplitude fitted with restarts, as in
Klindt's experiments (which have 100 of them); amplitude fitted; amplitude and length scale fitted.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from bars import bar, threads, times
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from inscape.kernels import GaussianProcess, Rbf, WideNetwork, gaussian_process


def data(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(n, 10, generator=draw, dtype=torch.float64)
    z = torch.randn(n, 10, generator=draw, dtype=torch.float64)
    noise = 0.1 * torch.randn(n, generator=draw, dtype=torch.float64)
    return x, x[:, :3].sum(1).sin() + noise, z


def peer(x: torch.Tensor, y: torch.Tensor, bounds: object, restarts: int = 0) -> object:
    amplitude, length = ("fixed", "fixed") if bounds is None else bounds  # type: ignore[misc]
    kernel = ConstantKernel(1.0, amplitude) * RBF(3.0, length)
    chosen = {"alpha": 1e-2, "n_restarts_optimizer": restarts, "random_state": 0}
    return GaussianProcessRegressor(kernel, **chosen).fit(x.numpy(), y.numpy())


def report(
    job: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int, gap: float
) -> None:
    taken = times(rounds, 0, peer=theirs, ours=ours)
    print(f"  ours {taken['ours']:.3f} s, scikit-learn {taken['peer']:.3f} s, {gap:.1e} apart")
    count = torch.get_num_threads()
    name = f"Gaussian process, {job}, {count} thread{'s' * (count > 1)}, against scikit-learn"
    bar(name, taken["peer"] / taken["ours"], at_least=1)


def fixed(rounds: int) -> None:
    x, y, z = data(1000)
    kernel = Rbf(length_scale=3.0)

    def ours() -> tuple[torch.Tensor, torch.Tensor]:
        return gaussian_process(x, y, kernel=kernel, noise=1e-2, fitted=()).predict(z)

    def theirs() -> tuple[np.ndarray, np.ndarray]:
        return peer(x, y, None).predict(z.numpy(), return_std=True)  # type: ignore[attr-defined]

    gap = np.abs(ours()[0].numpy() - theirs()[0]).max() / np.abs(theirs()[0]).max()
    report("fixed settings, 1000 points and predictions", ours, theirs, rounds, gap)


def fitted(n: int, names: tuple[str, ...], restarts: int, rounds: int) -> None:
    x, y, _ = data(n)
    wide = (1e-5, 1e5)
    bounds = (wide, wide if "length_scale" in names else "fixed")
    settings = {"kernel": Rbf(length_scale=3.0), "noise": 1e-2}

    def ours() -> GaussianProcess:
        return gaussian_process(x, y, **settings, fitted=names, restarts=restarts)

    def theirs() -> float:
        return peer(x, y, bounds, restarts).log_marginal_likelihood_value_  # type: ignore

    reached = theirs()
    gap = abs(ours().log_likelihood - reached) / abs(reached)
    job = f"{' and '.join(names).replace('_', ' ')} fitted, {n} points, {restarts} restarts"
    report(job, ours, theirs, rounds, gap)


def wide() -> None:
    x, _, _ = data(1000)
    for activation in ("relu", "erf", "tanh"):
        kernel = WideNetwork(activation=activation, hidden=2, form="ntk")
        taken = times(1, ours=lambda kernel=kernel: kernel.matrix(x))["ours"]
        print(f"tangent kernel of wide networks, {activation}, 1000 points: {taken * 1e3:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    for count in options.threads:
        with threads(count):
            fixed(3 * options.rounds)
            fitted(300, ("amplitude",), options.restarts, options.rounds)
            fitted(1000, ("amplitude",), 0, options.rounds)
            fitted(1000, ("amplitude", "length_scale"), 0, options.rounds)
    wide()


if __name__ == "__main__":
    main()
