"""What the files of a model may be: broken where they are not needed, under names that are no text, in any locale."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import kilin


def copy_of(folder):
    shutil.copytree(ROOT / "models/tiny", folder)
    return folder


def test_broken_files_are_errors_where_they_are_needed_alone(tmp_path):
    folder = copy_of(tmp_path / "m")
    (folder / "generation_config.json").write_text('{"temperature": 0.6,}')
    with pytest.warns(UserWarning, match="generation_config.json"):
        assert kilin.load(folder).generate("hi", 2).ids
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.warns(UserWarning, match="tokenizer_config.json"):
        broken = kilin.load(folder)
    assert broken.logits([5, 6]).shape == (1, 2, 4096)
    with pytest.raises(kilin.Error, match="tokenizer_config.json"):
        broken.tokenize("hi")


def test_names_are_bytes(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9"
    copy_of(os.fsdecode(name))
    for path in (name, os.fsdecode(name), Path(os.fsdecode(name))):
        assert ascii(kilin.load(path))
    with pytest.raises(kilin.NotFound, match=r"caf\?"):
        kilin.load(name + b"/nowhere")


def test_weights_that_are_no_numbers_are_an_error(tmp_path):
    file = copy_of(tmp_path / "m") / "model.safetensors"
    raw = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(raw[:8], "little")
    at = begin + json.loads(raw[8:begin])["lm_head.weight"]["data_offsets"][0]
    raw[at:at + 2] = b"\xc0\x7f"
    file.write_bytes(raw)
    model = kilin.load(tmp_path / "m")
    for wrong in (model.logits, model.next_token_probs, model.logit_lens, model.generate):
        with pytest.raises(kilin.Error, match="kilin verify"):
            wrong([5, 6])


def test_numbers_are_read_alike_in_every_locale(tmp_path):
    for locale in ("de_DE", "ps_AF"):  # whose decimal points have one byte and two
        made = shutil.which("localedef") and subprocess.run(
            ["localedef", "-i", locale, "-f", "UTF-8", str(tmp_path / locale)], capture_output=True, check=False).returncode < 2
        if not made:
            pytest.skip("locales can't be made here")
        code = (f"import locale, sys; locale.setlocale(locale.LC_NUMERIC, {locale!r}); import kilin\n"
                f"assert locale.localeconv()['decimal_point'] != '.'\n"
                f"print(kilin.load({str(ROOT / 'models/tiny')!r}).logits([5, 6])[0, -1].tolist())")
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={
            **os.environ, "LOCPATH": str(tmp_path), "PYTHONPATH": str(Path(kilin.__file__).parents[1])})
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout) == kilin.load().logits([5, 6])[0, -1].tolist()
