import subprocess
import sys

import pytest

from inscape.files.atomic import written


def test_file_appears_when_the_block_is_done(tmp_path):
    path = tmp_path / "a"
    with written(path) as file:
        file.write(b"all")
        assert not path.exists()
    assert path.read_bytes() == b"all"


def test_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(TypeError, match="bytes-like"), written(path) as file:
        file.writelines([b"half", 1])
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a", "old")]


def test_kill_leaves_what_was_there(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    code = (
        "import os, signal, pathlib, sys; from inscape.files.atomic import written\n"
        "with written(pathlib.Path(sys.argv[1])) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    assert path.read_text() == "old"
