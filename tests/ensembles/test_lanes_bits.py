"""A member has the same bits in any company, lane and order, on any number of threads."""

import ast
import subprocess
import sys

import pytest
import torch

from inscape.ensembles import fit_many
from inscape.ensembles.lanes import group as groups
from inscape.ensembles.lanes import training
from inscape.ensembles.lanes.state import LANES
from inscape.models import mlp, two_layer

DTYPES = [torch.float32, torch.float64]


def shallow(seed, dtype):
    return two_layer(1, 33, init="glorot", seed=seed, dtype=dtype)


def deep(seed, dtype):
    return mlp(1, 8, 8, 1, activation="tanh", seed=seed, dtype=dtype)


CASES = {
    "shallow": (shallow, {"lr": 0.1, "epochs": 300, "stop_loss": 0.02}),
    "deep": (deep, {"lr": 0.05, "epochs": 60, "stop_loss": 0.02, "batch": 3, "optimizer": "adam"}),
}


def member_data(seed, dtype, n=7):
    x = torch.linspace(-1, 1, n, dtype=dtype)[:, None]
    return x, torch.sin(3 * x + seed)


def run(case, dtype, seeds, sizes=None):
    """Train the members of these seeds; return the bits and the facts of each."""
    build, options = CASES[case]
    sizes = sizes or [7] * len(seeds)
    pairs = [member_data(seed, dtype, n) for seed, n in zip(seeds, sizes, strict=True)]
    xs, ys = map(list, zip(*pairs, strict=True))
    models = [build(seed, dtype) for seed in seeds]
    found = {}
    for member in fit_many(models, xs, ys, seeds=seeds, backend="lanes", **options):
        bits = torch.cat([p.detach().flatten() for p in member.model.parameters()])
        seed, n = seeds[member.index], sizes[member.index]
        found[seed, n] = (bits, member.loss, member.epochs, member.stopped)
    assert len(found) == len(seeds)
    return found


def same(one, two):
    return torch.equal(one[0], two[0]) and one[1:] == two[1:]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_a_member_does_not_know_its_company(case, dtype):
    crowd = list(range(3 * LANES[dtype] + 5))
    together = run(case, dtype, crowd)
    assert len({facts[2] for facts in together.values()}) > 3  # they leave at different times
    backwards = run(case, dtype, crowd[::-1])  # so in another lane, next to others
    assert all(same(together[key], backwards[key]) for key in together)
    for seed in (0, 5, crowd[-1]):
        alone = run(case, dtype, [seed])
        assert same(together[seed, 7], alone[seed, 7])


@pytest.mark.parametrize("case", CASES)
def test_a_member_does_not_know_the_sizes_of_others(case):
    seeds = list(range(20))
    sizes = [3 + seed % 4 for seed in seeds]
    together = run(case, torch.float64, seeds, sizes)
    for seed in (0, 7, 19):
        alone = run(case, torch.float64, [seed], [sizes[seed]])
        assert same(together[seed, sizes[seed]], alone[seed, sizes[seed]])


@pytest.mark.parametrize("case", CASES)
def test_length_of_turns_and_number_of_threads_do_not_matter(case, monkeypatch):
    dtype, seeds = torch.float64, list(range(37))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    wanted = run(case, dtype, seeds)
    monkeypatch.setattr(groups, "TURN", 0.0)  # one epoch per turn
    assert all(same(wanted[key], found) for key, found in run(case, dtype, seeds).items())
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert all(same(wanted[key], found) for key, found in run(case, dtype, seeds).items())


class InTurn(training.Team):
    """Two groups that advance in turn, as two threads do that are equally quick."""

    def __init__(self, threads):
        super().__init__(1)
        self._threads = 2

    def ended(self):
        group = self.groups.pop(0)
        group.advance()
        return group


def test_a_group_that_thins_out_joins_another(monkeypatch):
    """Two groups of seven points lose most of their members while others still wait."""
    joined = []
    absorb = groups.LaneGroup.absorb
    monkeypatch.setattr(groups.LaneGroup, "absorb", lambda a, b: (joined.append(b), absorb(a, b)))
    monkeypatch.setattr(training, "Team", InTurn)
    monkeypatch.setattr(groups, "TURN", 0.0)
    dtype = torch.float64
    build, options = CASES["deep"]
    seeds = list(range(40))
    sizes = [7 if seed < 16 else 5 for seed in seeds]
    pairs = [member_data(seed, dtype, n) for seed, n in zip(seeds, sizes, strict=True)]
    orders = orders_of(options)
    models = [build(seed, dtype) for seed in seeds]
    xs, ys = map(list, zip(*pairs, strict=True))
    found = {m.index: m for m in training.train(models, xs, ys, orders, seeds)}
    assert joined
    alone = run("deep", dtype, seeds, sizes)
    for index, member in found.items():
        bits = torch.cat([p.detach().flatten() for p in member.model.parameters()])
        facts = (bits, member.loss, member.epochs, member.stopped)
        assert same(facts, alone[index, sizes[index]])


def orders_of(options):
    """Return the orders that fit_many makes of its options."""
    caught = []

    class Stop(Exception):
        pass

    def look(models, xs, ys, settings):
        caught.append(settings)
        raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inscape.ensembles.lanes.reason_not", look)
        x, y = member_data(0, torch.float64)
        with pytest.raises(Stop):
            fit_many([deep(0, torch.float64)], x, y, backend="lanes", progress=False, **options)
    return caught[0]


def test_who_leaves_first_comes_first_and_who_has_not_left_is_untouched():
    dtype = torch.float64
    build, options = CASES["shallow"]
    pairs = [member_data(seed, dtype) for seed in range(12)]
    models = [build(seed, dtype) for seed in range(12)]
    xs, ys = map(list, zip(*pairs, strict=True))
    members = fit_many(models, xs, ys, backend="lanes", **options)
    before = torch.get_rng_state()
    first = next(members)
    assert torch.equal(before, torch.get_rng_state())
    del members  # closes the training
    moved = [
        not torch.equal(model[0].weight, build(seed, dtype)[0].weight)
        for seed, model in enumerate(models)
    ]
    assert moved[first.index]
    assert not all(moved)


def test_an_interrupt_passes(monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(groups.LaneGroup, "advance", interrupt)
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        x, y = member_data(0, torch.float64)
        with pytest.raises(KeyboardInterrupt):
            list(fit_many([shallow(0, torch.float64)], x, y, backend="lanes"))


def test_progress_tells_of_all_steps(monkeypatch, capsys):
    monkeypatch.setattr("inscape.runtime.progress.PATIENCE", 0.0)
    x, y = member_data(0, torch.float64)
    models = [shallow(seed, torch.float64) for seed in range(3)]
    list(fit_many(models, x, y, lr=0.1, epochs=50, stop_loss=0.1, backend="lanes", progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("training 3 networks ")
    assert lines[-1].startswith("training 3 networks 150/150 (100%)")


def test_numba_is_not_loaded_by_an_import():
    code = "import sys, inscape.ensembles; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_another_process_finds_the_same_bits():
    code = (
        "import torch; from inscape.models import two_layer\n"
        "from inscape.ensembles import fit_many\n"
        "x = torch.linspace(-1, 1, 7, dtype=torch.float64)[:, None]\n"
        "model = two_layer(1, 33, init='glorot', seed=5, dtype=torch.float64)\n"
        "y = torch.sin(3 * x + 5)\n"
        "for m in fit_many([model], x, y, lr=0.1, epochs=300, stop_loss=0.02, backend='lanes'):\n"
        "    print(torch.cat([p.detach().flatten() for p in m.model.parameters()]).tolist())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = run("shallow", torch.float64, list(range(9)))[5, 7][0].tolist()
    assert ast.literal_eval(there.stdout) == here
