"""The forms that a prompt may have, and prompts with targets."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Sequence, Union

import numpy as np

from .checks import texts
from .errors import InvalidArgument

#: A text, or token ids.
PromptLike = Union[str, Sequence[int], np.ndarray, "Prompt"]

#: One prompt, or a batch of them.
Prompts = Union[PromptLike, Sequence[PromptLike]]


@dataclass
class Prompt:
    """A prompt, and groups of tokens whose probability after it is of interest."""

    ids: list[int]
    targets: dict[str, list[int]] = field(default_factory=dict)  #: token ids by the group's name
    text: str = ""

    @classmethod
    def from_strings(cls, model, prompt: PromptLike, targets: Mapping[str, Union[str, Sequence[str]]]) -> "Prompt":
        """Targets are words. The first token of each counts, with and without a space before the word."""
        groups = {}
        for name, words in targets.items():
            words = texts(f"target {name!r}", words)
            if not words or not all(words):
                raise InvalidArgument(f"target {name!r} is {words!r:.80}; expected words")
            groups[name] = sorted({model.tokenize(form)[0] for word in words for form in (word, " " + word)})
        return cls(ids_of(model, prompt), groups, prompt if isinstance(prompt, str) else "")

    def has_no_collisions(self) -> bool:
        """Whether no token is in two groups."""
        ids = [i for group in self.targets.values() for i in set(group)]
        return len(ids) == len(set(ids))

    def probabilities(self, next_token_probs) -> dict[str, np.ndarray]:
        """Probability of each group: the sum of `next_token_probs` [..., vocab] over its tokens, [...]."""
        probs = np.asarray(next_token_probs)
        for name, ids in self.targets.items():
            for i in ids:
                if not 0 <= i < probs.shape[-1]:
                    raise InvalidArgument(f"target {name!r}: token id {i} is outside of the vocabulary: "
                                          f"0 to {probs.shape[-1] - 1}")
        return {name: probs[..., sorted(set(ids))].sum(axis=-1) for name, ids in self.targets.items()}


def ids_of(model, prompt: PromptLike) -> list[int]:
    """The token ids of one prompt."""
    if isinstance(prompt, str):
        return model.tokenize(prompt)
    if isinstance(prompt, Prompt):
        prompt = prompt.ids
    ids = np.asarray(prompt)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InvalidArgument(f"a prompt is {prompt!r:.80}; expected a text or a list of token ids")
    for i in ids[(ids < 0) | (ids >= model.vocab_size)][:1]:  # checked here, before numbers beyond int32 would wrap
        raise InvalidArgument(f"token id {i} is outside of the vocabulary: 0 to {model.vocab_size - 1}")
    return [int(i) for i in ids]


def is_batch(prompts: Prompts) -> bool:
    """Whether this is a list of prompts, and not one."""
    if isinstance(prompts, (str, Prompt)):
        return False
    if hasattr(prompts, "__array__"):  # a NumPy array, or another library's tensor
        return np.ndim(prompts) == 2
    return isinstance(prompts, Sequence) and any(not isinstance(p, (int, np.integer)) for p in prompts)


def batch_of(model, prompts: Prompts) -> list[np.ndarray]:
    """The int32 ids of each prompt of a batch, or of a single prompt."""
    parts: list = list(prompts) if is_batch(prompts) else [prompts]  # type: ignore[arg-type]
    return [np.asarray(ids_of(model, p), np.int32) for p in parts]
