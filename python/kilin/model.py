"""A loaded model: passes, answers, traces, and what researchers do with them most often."""
from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Iterator, Sequence

import numpy as np

from . import _kilin, generation, lens, paths
from .checks import no_nan, text as checked_text, texts, whole_number
from .errors import InvalidArgument, NotFound
from .generation import Edit, Generation, TracedAnswer
from .prompts import Prompt, PromptLike, Prompts, batch_of, ids_of, is_batch
from .trace import Trace


def embedded_model() -> Path:
    """The folder of the small model that is part of Kilin."""
    here = Path(__file__).parent.absolute()  # of the link, in a build folder
    for folder in (here / "models/tiny", here.parent.parent / "share/kilin/models/tiny"):
        if folder.is_dir():
            return folder
    raise NotFound(f"{here}: the embedded model is not here; name one")


def load(path: str | os.PathLike | None = None, *, threads: int = 0, quantize: str | None = None,
         activations: str | None = None, kv_type: str | None = None, max_sequences: int = 1,
         context_tokens: int = 32768) -> "Model":
    """Loads a model.

    :param path: a folder in Hugging Face's layout, a GGUF file, or nothing for the embedded model
    :param threads: how many threads compute; 0 for as many as this process may use
    :param quantize: packs weights in f32, f16 or bf16 as "q8_0", "q4_0", ...
    :param activations: what inputs of products are rounded to: "f32", "bf16" or "int8"; None: int8 with quantised weights,
        else f32
    :param kv_type: how latents are cached: "f32", "bf16" or "q8"; None: f32 with f32 activations, else bf16
    :param max_sequences: how many answers `generate` computes side by side
    :param context_tokens: the most that they may hold together; traces have memory of their own
    """
    folder = os.fsencode(path if path is not None else embedded_model())
    core = _kilin.load(folder, whole_number("threads", threads), quantize, activations, kv_type,
                       whole_number("max_sequences", max_sequences), whole_number("context_tokens", context_tokens))
    for warning in core.warnings:  # of broken files that can be done without
        warnings.warn(warning, stacklevel=2)
    return Model(core)


class Model:
    """A loaded model; get one from `kilin.load`. Python threads may share it.

    A prompt is a text, a list of token ids, a `Prompt`, or a list of these: a batch. Arrays of a batch lead with its prompts;
    of one prompt they do too, with 1. Prompts of different lengths are padded on the left in what is returned, never in what is
    computed. All values are float32, ids and indices int32.
    """

    def __init__(self, core):
        self._core = core
        self._support = core.support()
        self._order = {offered["name"]: n for n, offered in enumerate(self._support)}
        self._names: dict[str, str | None] = {}
        #: sizes of config.json, and what each block is built of: "kda" or "mla", "dense" or "moe"
        self.config: dict = core.config()
        self.stop_ids: list[int] = core.stop_ids  #: an answer ends with one of these

    def __repr__(self) -> str:
        return f"<kilin.Model {self._core.path}: {self.num_layers} layers of {self.hidden_size}>"

    @property
    def num_layers(self) -> int:
        return self.config["num_hidden_layers"]

    @property
    def hidden_size(self) -> int:
        return self.config["hidden_size"]

    @property
    def vocab_size(self) -> int:
        return self.config["vocab_size"]

    def support(self) -> list[dict]:
        """All values that the model offers, in the order of the pass: name, shape (of one prompt, by names in config.json; S
        tokens of the step, K all so far), writable, staged (computed only if asked for; moves logits by at most 1e-5)."""
        return [dict(offered) for offered in self._support]

    def _resolve(self, path: str) -> str | None:
        if path not in self._names:
            self._names[path] = paths.resolve(self._core.find, path)
        return self._names[path]

    def _names_in(self, path: str) -> list[str]:
        return paths.names_in(self._resolve, [offered["name"] for offered in self._support], path)

    # --- text ---

    def tokenize(self, text: str, specials: bool = False) -> list[int]:
        """Token ids of a text. :param specials: names of special tokens in it become these tokens"""
        utf8 = checked_text("the text", text).encode()
        return (self._core.encode_with_specials if specials else self._core.encode)(utf8)

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of token ids; bytes that are no whole character become U+FFFD."""
        return self._core.decode(ids_of(self, [int(i) for i in ids])).decode("utf-8", "replace")

    # --- passes ---

    def trace(self, prompts: Prompts, *, max_new_tokens: int = 0, cuts: Sequence[int] = (), **sampling) -> Trace:
        """Looks inside a forward pass, which runs interleaved with the body of the `with`::

            with model.trace("The LORD said unto") as t:
                h = t.layers[3].layer_output.save()
                t.layers[5].mlp_output[:, -1] += vector
            print(t.logits.shape, h.value)

        A read waits until the pass reaches the value, so values are read in the order of the pass. Arrays share the model's
        memory; `save()` copies. An exception in the body ends the pass and leaves the model as it was.

        :param max_new_tokens: that each prompt generates; `t.step(n)` are the values of the step that feeds the n-th
        :param cuts: where else a step begins: [5] feeds tokens 0 to 4 in step 0, the others in step 1
        :param sampling: temperature, top_k, top_p, min_p, repetition_penalty, seed
        """
        batch, new = batch_of(self, prompts), whole_number("max_new_tokens", max_new_tokens)
        for n, ids in enumerate(batch):
            if len(ids) + new - 1 > self.config["model_max_length"]:
                raise InvalidArgument(f"prompt {n}: {len(ids)} tokens and {new} new ones are more than the model's "
                                      f"{self.config['model_max_length']}")
        return Trace(self, batch, [whole_number("a cut", cut) for cut in cuts], new, generation.sampling_params(sampling))

    def logits(self, prompts: Prompts, edit: Edit | None = None) -> np.ndarray:
        """Logits of every token, [B, S, vocab]. :param edit: called first, with the pass's values, like the body of a trace"""
        if edit is None:
            rows = [self._core.logits(ids) for ids in batch_of(self, prompts)]
            logits = np.zeros((len(rows), max(map(len, rows)), self.vocab_size), np.float32)
            for out, row in zip(logits, rows):
                out[len(out) - len(row):] = row
            return logits
        with self.trace(prompts) as t:
            edit(t)
        return t.logits.value

    def next_token_probs(self, prompts: Prompts, edit: Edit | None = None) -> np.ndarray:
        """Probabilities of the token after each prompt, [B, vocab]. :param edit: as in `logits`"""
        with self.trace(prompts) as t:
            if edit is not None:
                edit(t)
        probs = t.next_token_probs.value
        return no_nan("the probabilities", probs) if edit is None else probs

    def generate(self, prompts: Prompts, max_new_tokens: int = 64, *, stop: str | Sequence[str] = (),
                 edit: Edit | None = None, **sampling) -> Any:
        """Goes on with a prompt, greedily unless `sampling` (as in `trace`) says otherwise.

        :param stop: a text before which an answer ends, or several
        :param edit: called once per step with its values, `t.index` 0 for the prompt, n for the n-th new token; `t.stop()` in
            it ends the answers. With an edit, the answers come from a trace
        :returns: a Generation, or a list of them for a batch
        """
        batch, stops = batch_of(self, prompts), texts("stop", stop)
        most, params = whole_number("max_new_tokens", max_new_tokens, at_least=1), generation.sampling_params(sampling)
        if edit is None:
            answers = generation.plain(self, batch, most, params, stops)
        else:
            growing = [TracedAnswer(self, generation.room_for(self, ids, most), stops) for ids in batch]
            for _ in generation.edited(self, batch, growing, most, params, edit):
                pass
            answers = [answer.generation() for answer in growing]
        return answers if is_batch(prompts) else answers[0]

    def stream(self, prompt: PromptLike, max_new_tokens: int = 64, *, stop: str | Sequence[str] = (),
               edit: Edit | None = None, **sampling) -> Iterator[str]:
        """Like `generate`, for one prompt, in pieces of text as they come."""
        if is_batch(prompt):
            raise InvalidArgument("a batch can't be streamed; expected one prompt")
        batch, stops = batch_of(self, prompt), texts("stop", stop)
        most, params = whole_number("max_new_tokens", max_new_tokens, at_least=1), generation.sampling_params(sampling)
        if edit is None:
            return generation.plain_text(self, batch[0], most, params, stops)
        answers = [TracedAnswer(self, generation.room_for(self, ids, most), stops) for ids in batch]
        pieces = generation.edited(self, batch, answers, most, params, edit)
        return (piece for (piece,) in pieces if piece)

    # --- what is done most often ---

    def project_on_vocab(self, stream) -> np.ndarray:
        """What the stream would predict if the model ended there: puts [..., hidden_size] through the final norm and lm_head;
        logits [..., vocab]."""
        stream = np.ascontiguousarray(stream, np.float32)
        if stream.shape[-1:] != (self.hidden_size,):
            raise InvalidArgument(f"the stream is {list(stream.shape)}; expected [..., {self.hidden_size}]")
        logits = self._core.project_on_vocab(stream.reshape(-1, self.hidden_size))
        return logits.reshape(*stream.shape[:-1], self.vocab_size)

    def logit_lens(self, prompts: Prompts, layers: int | Sequence[int] | None = None, position: int = -1) -> np.ndarray:
        """Probabilities of the next token after each layer, as if the model ended there: [prompts, layers, vocab].

        :param layers: by number, negative ones from the last; None for all
        :param position: of the prompt's own tokens; -1 is the last
        """
        return lens.logit_lens(self, prompts, layers, position)

    def patchscope(self, source: PromptLike, target: PromptLike, layers: int | Sequence[int] | None = None, *,
                   source_position: int = -1, target_position: int = -1,
                   target_layers: int | Sequence[int] | None = None) -> np.ndarray:
        """Takes the stream of one token of `source` after a layer, puts it in place of a token of `target` (after the same
        layer, or `target_layers`), and lets the model go on. Returns the probabilities of the token after `target`, [layers,
        vocab]."""
        return lens.patchscope(self, source, target, layers, source_position, target_position, target_layers)

    def collect_activations(self, prompts: Prompts, value: str | Sequence[str] = "layer_output",
                            layers: int | Sequence[int] | None = None, *, position=-1, batch_size: int = 8,
                            show_progress: bool | None = None) -> Any:
        """One value of a layer for many prompts.

        :param value: its name in the layer ("layer_output", "mlp.router_logits"), or several
        :param layers: those that have it; None for all that do
        :param position: of the tokens to keep, -1 for the last; or a function from a prompt's value to what shall be kept of
            it. Scores and states need one: they have no row for each token
        :param show_progress: a bar on stderr; None shows one on terminals alone
        :returns: [layers, prompts, ...], or a dict of these by name if several were asked for
        """
        return lens.collect_activations(self, prompts, value, layers, position, batch_size, show_progress)

    def target_probabilities(self, prompts: Prompt | Sequence[Prompt], edit: Edit | None = None) -> dict[str, np.ndarray]:
        """Probabilities of the groups of `Prompt` targets, [prompts] each. All prompts have the same groups."""
        return lens.target_probabilities(self, prompts, edit)
