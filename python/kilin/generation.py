"""Answers: whole or piece by piece, plain or with edits during generation."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator, Sequence

from . import _kilin
from .checks import whole_number
from .errors import Error, InvalidArgument
from .trace import StepView, Trace

#: Called once a step, with its values; step 0 is the prompt, step n feeds the n-th new token.
Edit = Callable[[StepView], None]


@dataclass
class Generation:
    """An answer; str() is its text."""

    text: str
    ids: list[int]
    finish_reason: str  #: "stop", "length"; "cancelled" by an edit

    def __str__(self) -> str:
        return self.text


_SAMPLING = {"temperature": float, "top_k": int, "top_p": float, "min_p": float, "repetition_penalty": float, "seed": int}


def sampling_params(options: dict):
    """C++'s SamplingParams. Raises TypeError for an unknown name, InvalidArgument for a value out of range."""
    checked: dict = {}
    for name, value in options.items():
        if name not in _SAMPLING:
            raise TypeError(f"there is no option {name!r}; expected {', '.join(_SAMPLING)}")
        if _SAMPLING[name] is int:
            checked[name] = whole_number(name, value, below=2**64 if name == "seed" else 2**63)
            continue
        try:
            checked[name] = float(value)
        except (TypeError, ValueError):
            raise InvalidArgument(f"{name} is {value!r:.80}; expected a number") from None
    return _kilin.SamplingParams(**checked)


def _shown(utf8: bytes) -> str:
    return utf8.decode("utf-8", "replace")


def _require_numbers(answer) -> None:
    if answer.finish_reason == "error":
        raise Error("the model's logits hold no number; kilin verify looks for broken weights")


def plain(model, prompts, max_new_tokens: int, sampling, stop: list[str]) -> list[Generation]:
    """Answers to all prompts, computed side by side up to the model's max_sequences."""
    answers = [_kilin.Answer(model._core, ids, max_new_tokens, sampling, stop) for ids in prompts]
    for answer in answers:
        while not answer.finished:
            answer.step()
        _require_numbers(answer)
    return [Generation(_shown(answer.text), answer.output_ids, answer.finish_reason) for answer in answers]


def plain_text(model, ids, max_new_tokens: int, sampling, stop: list[str]) -> Iterator[str]:
    """Pieces of text of one prompt as they come."""
    answer = _kilin.Answer(model._core, ids, max_new_tokens, sampling, stop)
    while not answer.finished:
        piece = _shown(answer.step())
        if piece:
            yield piece
    _require_numbers(answer)


def room_for(model, prompt, max_new_tokens: int) -> int:
    """New tokens that there is room for behind a prompt, as for an answer without edits; the last one needs none. Traces have
    memory of their own, so that a prompt may be longer than the context."""
    context, longest = model._core.context_tokens, model.config["model_max_length"]
    most = context if len(prompt) <= context else longest
    return min(max_new_tokens, max(1, most - len(prompt) + 1))


class TracedAnswer:
    """The answer that a trace's new tokens form. It ends as the engine's answers do: at a stop id, a stop string or the
    length."""

    def __init__(self, model, max_new_tokens: int, stop: list[str]):
        self._text = _kilin.AnswerText(model._core, stop)
        self._stop_ids, self._most = frozenset(model.stop_ids), max_new_tokens
        self._pieces: list[str] = []
        self._ids: list[int] = []
        self._finish_reason = ""

    @property
    def finished(self) -> bool:
        return self._finish_reason != ""

    def accept(self, tokens: Sequence[int]) -> str:
        """Takes the tokens made so far, up to where the answer ends. :returns: what can be shown now"""
        shown = b""
        for token in tokens[len(self._ids):]:
            if self.finished:
                break
            self._ids.append(token)
            is_stop = token in self._stop_ids
            shown += b"" if is_stop else self._text.push(token)
            if is_stop or self._text.stopped:
                shown += self._end("stop")
            elif len(self._ids) == self._most:
                shown += self._end("length")
        return self._show(shown)

    def cancel(self) -> str:
        """Ends the answer: no token follows. :returns: what was held back"""
        return "" if self.finished else self._show(self._end("cancelled"))

    def generation(self) -> Generation:
        return Generation("".join(self._pieces), self._ids, self._finish_reason)

    def _end(self, reason: str) -> bytes:
        self._finish_reason = reason
        return self._text.finish()

    def _show(self, utf8: bytes) -> str:
        self._pieces.append(_shown(utf8))
        return self._pieces[-1]


def edited(model, prompts, answers: list[TracedAnswer], max_new_tokens: int, sampling, edit: Edit) -> Iterator[list[str]]:
    """Lets the answers to all prompts grow, with one edit per step, until each has ended; yields what each can show so far. One
    that has ended goes on unheard beside the others."""
    most = max(room_for(model, ids, max_new_tokens) for ids in prompts)
    with Trace(model, prompts, [], most, sampling) as trace:
        for index in range(trace.steps):
            step = trace.step(index)
            if index > 0:
                step.input_ids  # noqa: B018: reading it brings the pass to this step, so that all have one more token
                yield [answer.accept(ids) for answer, ids in zip(answers, trace.output_ids)]
                if all(answer.finished for answer in answers):
                    trace.stop()
            edit(step)
    yield [answer.accept(ids) + answer.cancel() for answer, ids in zip(answers, trace.output_ids)]
