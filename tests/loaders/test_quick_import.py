"""Opening needs none of the heavy packages before they are used."""

import subprocess
import sys

HEAVY = ("pandas", "sklearn", "matplotlib", "rich", "joblib")


def loaded(code: str) -> set[str]:
    script = f"import sys; {code}; print(*[name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_intake_loads_nothing_heavy():
    assert loaded("import inscape.loaders") == set()


def test_the_test_can_fail():
    assert "joblib" in loaded("import joblib")
