"""What all tests share: neither settings nor language come from who runs them."""

import os
import signal
import sys

# What a shell starts in the background ignores Ctrl-C, and its children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for _name in [name for name in os.environ if name.startswith("LLM_")]:
    del os.environ[_name]
os.environ["LLM_LANG"] = "en"

from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402
from command_lines import OWN, TABLE  # noqa: E402

from equivalence.gateway import Gateway  # noqa: E402
from equivalence.runs.plan import CLOCK  # noqa: E402
from equivalence.settings import Settings  # noqa: E402
from offline_model import OfflineModel  # noqa: E402

# The same examples each time: the gate tells of the change in front of it, not of luck.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """One gateway for the whole session; each run opens its own log in it."""
    with Gateway(OfflineModel()) as running:
        yield running


@pytest.fixture(scope="session")
def offline_settings() -> Settings:
    """The defaults, without .env, with the judge's clock and no retries."""
    return Settings(_env_file=None, clock=CLOCK, retries=0)


@pytest.fixture
def front(gateway: Gateway) -> Gateway:
    """The gateway that a client talks to: it repairs, the offline model behind it."""
    return gateway


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    """The endpoint behind it: it sends what a script says, to the letter."""
    with Gateway(OfflineModel(), repair=False) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    path, known = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).resolve().is_relative_to(tmp_path.resolve()):
            del sys.modules[name]


@pytest.fixture
def own(folder: Path) -> Path:
    """The folder, with the project's table and implementations of one's own in it."""
    (folder / "pyproject.toml").write_text(TABLE, encoding="utf-8")
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    return folder


@pytest.hookimpl(optionalhook=True)  # xdist may be switched off
def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: a test often waits for the other end of a wire."""
    return (os.cpu_count() or 1) + 1
