"""Every example runs on the embedded model, and says something."""
import runpy

import pytest

from conftest import ROOT

EXAMPLES = sorted((ROOT / "python/examples").glob("*.py"))
SAYS = {"logit_lens": "first guesses", "attention_patterns": "half-lives", "ablation": "busiest expert",
        "activation_patching": "prefers", "steering": "a direction after layer", "state_surgery": "of the other story"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, capsys):
    runpy.run_path(str(example))["main"](ROOT / "models/tiny")
    out = capsys.readouterr().out
    assert SAYS[example.stem] in out and len(out.splitlines()) >= 5
