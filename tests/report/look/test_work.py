import pytest

from inscape.report.look.schedule import LookTask
from inscape.report.look.work import WorkCounts, read_work, work_of

NAMES = ("robustness", "path_length")


def ended(name, role, *, taken, complete=False, error=None):
    task = LookTask(name=name, role=role, start=lambda: iter(()))
    task.taken, task.complete, task.error = taken, complete, error
    return task


def test_what_was_taken_to_its_end_is_not_written():
    tasks = [
        ended("robustness", "network", taken=3),
        ended("robustness", "linear", taken=9, complete=True),
        ended("robustness", "initialisation 0", taken=2),
        ended("path_length", "network", taken=5, complete=True),
    ]
    work = work_of(tasks, {"batch": 64})
    assert str(work) == "batch=64,robustness=3/all/2"
    assert read_work(str(work), names=NAMES).answers["robustness"] == (3, None, 2)


def test_what_failed_fails_again():
    work = work_of([ended("robustness", "network", taken=0, error=ValueError())], {})
    assert work.most("robustness", "network") is None


def test_what_is_not_named_is_taken_to_its_end():
    work = read_work("batch=64,robustness=0/all/2", names=NAMES)
    assert work.most("robustness", "network") == 0
    assert work.most("robustness", "initialisation 0") == 2
    assert work.most("robustness", "initialisation 1") is None
    assert work.most("path_length", "network") is None
    assert str(WorkCounts()) == ""


@pytest.mark.parametrize(
    "text", ["", "batch", "batch=x", "robustness=1/2/3/4/5/6", "batch=all", "a b=3", "batch=-1"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(
        ValueError, match=r"--work must be what a look printed behind repeat:, found"
    ):
        read_work(text, names=NAMES)
