"""Fixtures of the tests that drive real launchers. See docs/testing.md."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import launch  # noqa: E402
from tests.support.compare import Comparison  # noqa: E402

COMPARISON = pytest.StashKey()

# Whoever started the tests in the background of a script had SIGINT and SIGQUIT ignored, and launchers inherit that.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="run the kill and restart tests for as many rounds "
                     "as the project's promise names")
    parser.addoption("--oracle-only", action="store_true", help="check the conformance rows against real "
                     "torchrun alone")


def pytest_report_header(config):
    built = "found" if launch.have_ddprun() else "NOT BUILT"
    return f"ddprun: {launch.BIN / 'ddprun'} ({built}); torchrun: {launch.PYTHON}"


def pytest_collection_finish(session):
    """Starts the conformance scenarios of this session, so that they run beside the tests."""
    tests = [item.function for item in session.items if hasattr(item.function, "scenario")]
    if not tests or session.config.option.collectonly:
        return
    directory = session.config._tmp_path_factory.mktemp("conformance")
    comparison = Comparison(directory, threads=2 * (os.cpu_count() or 1))
    session.config.stash[COMPARISON] = comparison
    comparison.schedule(tests)


def pytest_unconfigure(config):
    comparison = config.stash.get(COMPARISON, None)
    if comparison is not None:
        comparison.close()


@pytest.fixture
def comparison(request):
    """What the test of a row asks for its verdict."""
    class Verdict:
        @staticmethod
        def check(scenario):
            compared = request.config.stash[COMPARISON].check(scenario)
            if not compared and not request.config.option.oracle_only:
                pytest.skip("ddprun is not built: only the torchrun side was checked")

    return Verdict


@pytest.fixture
def case(tmp_path):
    """One fresh place to run ddprun in; everything started there is ended afterwards."""
    if not launch.have_ddprun():
        pytest.skip("ddprun is not built")
    with_cleanup = launch.Case(launch.Launcher("ddprun"), tmp_path)
    yield with_cleanup
    with_cleanup.close()


@pytest.fixture
def soak(request):
    return request.config.option.soak
