"""What the tests share: the embedded model, the golden checkpoint, and the reference of its inner values."""
import json
import os
from pathlib import Path

import numpy as np
import pytest

import kilin

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_STEP = 7919  # tools/make_golden_inside.py


def golden(name):
    """The way to golden data, as in tests/support/golden.h; skips the test where it does not stand."""
    folders = [ROOT.parent / "shared/golden", ROOT / "tests/golden"]
    if "KILIN_GOLDEN" in os.environ:
        folders = [os.environ["KILIN_GOLDEN"]]
    for folder in folders:
        if (Path(folder) / name).exists():
            return Path(folder) / name
    return pytest.skip(f"golden data '{name}' is not here")


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "I32": np.int32}
    return {name: np.frombuffer(data[8 + size:][slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


class Reference:
    """Golden arrays: all elements, or samples of them."""

    def __init__(self):
        try:
            whole = dict(np.load(golden("inside/T065.npz")))
            self.ids = whole.pop("ids")
            self.arrays, self.is_whole = whole, True
        except pytest.skip.Exception:
            samples = read_safetensors(golden("inside/T065_samples.safetensors"))
            self.ids = samples.pop("ids")
            self.arrays, self.is_whole = samples, False

    def check(self, name, ours):
        """Within 1e-5 of the largest value."""
        ours = np.asarray(ours, np.float32)
        if self.is_whole:
            truth = self.arrays[name].astype(np.float32)
            assert ours.shape == truth.shape, name
            ours, truth = ours.ravel(), truth.ravel()
            largest = np.abs(truth[np.isfinite(truth)]).max()
        else:
            largest, truth = self.arrays[name][0], self.arrays[name][1:]
            ours = ours.ravel()[np.arange(len(truth)) * SAMPLE_STEP % ours.size]
        same = ours == truth  # infinities too
        assert np.abs(ours[~same] - truth[~same]).max(initial=0) <= 1e-5 * largest, name


@pytest.fixture(scope="session")
def reference():
    return Reference()


@pytest.fixture(scope="session")
def golden_model():
    return kilin.load(golden("tiny-kimi-linear"), threads=2)


@pytest.fixture(scope="session")
def model():
    """models/tiny: layers 0 to 2 and 4 are KDA, 3 and 5 MLA; layer 0 is dense."""
    return kilin.load(ROOT / "models/tiny", threads=2)


@pytest.fixture
def text():
    return "The LORD said unto Moses"
