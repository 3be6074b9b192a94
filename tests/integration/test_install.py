"""The installed binaries work without the source tree and the build folder."""

import os
import subprocess

import pytest

from tests.support.launch import BIN, ROOT, Case, Launcher

BUILD = BIN.parent


@pytest.fixture
def prefix(tmp_path):
    if not (BIN / "ddprun").exists():
        pytest.skip("ddprun is not built")
    if not (BUILD / "cmake_install.cmake").exists():
        pytest.skip(f"{BUILD} is not a build folder of CMake")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", tmp_path / "prefix"], check=True, capture_output=True)
    return tmp_path / "prefix"


def test_the_installed_launcher_works_without_the_source_tree(prefix, tmp_path, monkeypatch):
    """The source tree is hidden by an empty file system in a mount namespace of the launcher."""
    launcher = Launcher("ddprun")
    names = {"run": "ddprun", "launch": "ddprun-launch"}
    monkeypatch.setattr(launcher, "command", lambda form: [str(prefix / "bin" / names[form])])
    case = Case(launcher, tmp_path / "case")
    script = case.dir / "script.py"
    script.write_text("import os\nprint('rank ' + os.environ['RANK'] + chr(10), end='')\n")
    hide = []
    if os.geteuid() == 0 and not str(tmp_path).startswith(str(ROOT)):
        hide = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {ROOT} && exec "$@"', "sh"]
    try:
        for form in ("run", "launch"):
            extra = ["--use-env"] if form == "launch" else []
            outcome = case.run("--nproc-per-node=2", *extra, script, form=form, before=hide,
                               env={"VIRTUAL_ENV": None, "PATH": f"{prefix}/bin:/usr/bin:/bin"})
            assert outcome.status == 0, outcome
            assert sorted(outcome.out.splitlines()) == ["rank 0", "rank 1"]
            case.assert_nothing_left()
    finally:
        case.close()


def test_installed_binaries_do_not_point_into_the_build_folder(prefix):
    binaries = [p for p in (prefix / "bin").iterdir() if p.is_file() and not p.is_symlink()]
    assert binaries
    for binary in binaries:
        dynamic = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
        assert "RUNPATH" not in dynamic and "RPATH" not in dynamic, dynamic
