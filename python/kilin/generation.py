"""Answers: whole or piece by piece, plain or with edits on the way."""
from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Callable, Iterator, Sequence

from . import _kilin
from .trace import StepView, Trace

#: Called once a step, with its values; step 0 is the prompt, step n feeds the n-th new token.
Edit = Callable[[StepView], None]


@dataclass
class Generation:
    """An answer; str() is its text."""

    text: str
    ids: list[int]
    finish_reason: str  #: "stop", "length"

    def __str__(self) -> str:
        return self.text


_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")


def sampling_params(options: dict):
    """What C++ calls SamplingParams. Raises TypeError for a name that is none, InvalidArgument for a value out of range."""
    for name in options:
        if name not in _SAMPLING:
            raise TypeError(f"there is no option {name!r}; expected {', '.join(_SAMPLING)}")
    return _kilin.SamplingParams(**options)


def plain(model, prompts, max_new_tokens: int, sampling, stop: Sequence[str]) -> list[Generation]:
    """Answers to all prompts, side by side as far as the model was loaded for it."""
    answers = [_kilin.Answer(model._core, ids, max_new_tokens, sampling, model.stop_ids, list(stop)) for ids in prompts]
    for answer in answers:
        while not answer.finished:
            answer.step()
    return [_generation(answer) for answer in answers]


def _generation(answer) -> Generation:
    return Generation(answer.text.decode("utf-8", "replace"), answer.output_ids, answer.finish_reason)


def plain_text(model, ids, max_new_tokens: int, sampling, stop: Sequence[str]) -> Iterator[str]:
    """Pieces of text of one prompt as they come."""
    answer = _kilin.Answer(model._core, ids, max_new_tokens, sampling, model.stop_ids, list(stop))
    while not answer.finished:
        piece = answer.step().decode("utf-8", "replace")
        if piece:
            yield piece
    rest = answer.step().decode("utf-8", "replace")
    if rest:
        yield rest


def edited(model, prompts, max_new_tokens: int, sampling, edit: Edit) -> Iterator[list[list[int]]]:
    """The new ids of each prompt, after every step. Ends when each has come to a stop id."""
    stop_ids = set(model.stop_ids)
    with Trace(model, prompts, [], max_new_tokens, sampling) as trace:
        for index in range(trace.steps):
            step = trace.step(index)
            if index > 0:
                step.input_ids  # noqa: B018: the pass comes to this step, and so the last one has its token
                yield trace.output_ids
                if all(stop_ids.intersection(ids) for ids in trace.output_ids):
                    trace.stop()
            edit(step)
    yield trace.output_ids


def ended(model, ids: list[int]) -> Generation:
    """An answer up to its first stop id."""
    stop_ids = set(model.stop_ids)
    stops = [n for n, i in enumerate(ids) if i in stop_ids]
    if stops:
        ids = ids[: stops[0] + 1]
    shown = ids[: stops[0]] if stops else ids
    return Generation(model.detokenize(shown), ids, "stop" if stops else "length")


def edited_text(model, prompts, max_new_tokens: int, sampling, edit: Edit) -> Iterator[str]:
    """Pieces of text of one prompt as they come."""
    decoder, stop_ids, done = codecs.getincrementaldecoder("utf-8")("replace"), set(model.stop_ids), 0
    for outputs in edited(model, prompts, max_new_tokens, sampling, edit):
        new, done = outputs[0][done:], len(outputs[0])
        for token in new:
            if token in stop_ids:  # the last: what comes behind it is no part of the answer
                break
            piece = decoder.decode(model._core.decode([token]))
            if piece:
                yield piece
    rest = decoder.decode(b"", True)
    if rest:
        yield rest
