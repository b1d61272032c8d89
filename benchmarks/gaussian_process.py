"""How fast Gaussian processes are, beside scikit-learn.

    python benchmarks/gaussian_process.py

CPU time on one thread, float64, both sides in turn in one process, best of several rounds, points
of 10 inputs. Bar: at least as fast as scikit-learn in each of four jobs: fixed settings, with means
and deviations at as many other points; amplitude fitted with 100 restarts, as in Klindt's
experiments (300 points, since the peer takes minutes for 1000); amplitude fitted; amplitude and
length scale fitted.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from inscape.kernels import GaussianProcess, Rbf, WideNetwork, gaussian_process


def best(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)


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


def report(job: str, ours: float, theirs: float, gap: float) -> None:
    print(
        f"{job}: {ours * 1e3:.0f} ms, scikit-learn {theirs * 1e3:.0f} ms: {theirs / ours:.1f} x "
        f"faster (bar 1); {gap:.1e} apart"
    )


def fixed(rounds: int) -> None:
    x, y, z = data(1000)
    kernel = Rbf(length_scale=3.0)

    def ours() -> tuple[torch.Tensor, torch.Tensor]:
        return gaussian_process(x, y, kernel=kernel, noise=1e-2, fitted=()).predict(z)

    def theirs() -> tuple[np.ndarray, np.ndarray]:
        return peer(x, y, None).predict(z.numpy(), return_std=True)  # type: ignore[attr-defined]

    gap = np.abs(ours()[0].numpy() - theirs()[0]).max() / np.abs(theirs()[0]).max()
    report("fixed settings, 1000 points", best(ours, rounds), best(theirs, rounds), gap)


def fitted(n: int, names: tuple[str, ...], restarts: int, rounds: int) -> None:
    x, y, _ = data(n)
    wide = (1e-5, 1e5)
    bounds = (wide, wide if "length_scale" in names else "fixed")
    settings = {"kernel": Rbf(length_scale=3.0), "noise": 1e-2}

    def ours() -> GaussianProcess:
        return gaussian_process(x, y, **settings, fitted=names, restarts=restarts)

    def theirs() -> float:
        return peer(x, y, bounds, restarts).log_marginal_likelihood_value_  # type: ignore

    gap = abs(ours().log_likelihood - theirs()) / abs(theirs())
    job = f"{' and '.join(names)} fitted, {n} points, {restarts} restarts"
    report(job, best(ours, rounds), best(theirs, 1), gap)


def wide(rounds: int) -> None:
    x, _, _ = data(1000)
    for activation in ("relu", "erf", "tanh"):
        kernel = WideNetwork(activation=activation, hidden=2, form="ntk")
        taken = best(lambda kernel=kernel: kernel.matrix(x), rounds)
        print(f"tangent kernel of wide networks, {activation}, 1000 points: {taken * 1e3:.0f} ms")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rounds", type=int, default=3)
    rounds = asked.parse_args().rounds
    torch.set_num_threads(1)
    fixed(rounds)
    fitted(300, ("amplitude",), 100, rounds)
    fitted(1000, ("amplitude",), 0, rounds)
    fitted(1000, ("amplitude", "length_scale"), 0, rounds)
    wide(1)


if __name__ == "__main__":
    main()
