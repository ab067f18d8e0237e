"""The well-known experiments, each a few lines of traces. Methods of Model call them."""
from __future__ import annotations

import numpy as np

from .checks import layers_of, no_nan, whole_number
from .errors import InvalidArgument, NotFound, Unavailable
from .progress import progress
from .prompts import Prompt, batch_of


def softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def _chosen(model, layers) -> list[int]:
    """The layers in the caller's order. :param layers: None for all"""
    chosen = layers_of(model.num_layers, range(model.num_layers) if layers is None else layers)
    if not chosen:
        raise InvalidArgument("layers is empty; expected one at least")
    return chosen


def _stream(model, prompts, layers, position: int) -> np.ndarray:
    """Each prompt's stream at one of its own tokens after some layers, [prompts, layers, hidden]."""
    rows = {}
    with model.trace(prompts) as t:
        for layer in sorted(set(layers)):
            rows[layer] = np.stack([part[position] for part in t._parts(f"layers.{layer}.layer_output")])
    return np.stack([rows[layer] for layer in layers], axis=1)


def _alone(model, name: str, prompts) -> np.ndarray:
    batch = batch_of(model, prompts)
    if len(batch) != 1:
        raise InvalidArgument(f"{name} is a batch of {len(batch)} prompts; expected one")
    return batch[0]


def logit_lens(model, prompts, layers, position: int) -> np.ndarray:
    return no_nan("the probabilities", softmax(model.project_on_vocab(_stream(model, prompts, _chosen(model, layers), position))))


def patchscope(model, source, target, layers, source_position, target_position, target_layers) -> np.ndarray:
    chosen = _chosen(model, layers)
    into = chosen if target_layers is None else _chosen(model, target_layers)
    if len(into) != len(chosen):
        raise InvalidArgument(f"there are {len(into)} target_layers; expected {len(chosen)}, one for each layer")
    rows, target = _stream(model, _alone(model, "source", source), chosen, source_position)[0], _alone(model, "target", target)
    probs = []
    for row, layer in zip(rows, into):
        with model.trace(target) as t:
            t.layers[layer].layer_output[:, target_position] = row
            probs.append(t.next_token_probs[0].save())
    return np.stack(probs).view(np.ndarray)


def _has(model, layer: int, value: str) -> bool:
    try:
        model._core.find(f"layers.{layer}.{value}")
        return True
    except Unavailable:
        return False


def collect_activations(model, prompts, value, layers, position, batch_size, show_progress):
    values = [value] if isinstance(value, str) else list(value)
    batch = batch_of(model, prompts)
    batch_size = whole_number("batch_size", batch_size, at_least=1)
    chosen = {v: [n for n in _chosen(model, layers) if layers is not None or _has(model, n, v)] for v in values}
    for v, held_by in chosen.items():
        if not held_by:
            raise NotFound(f"{v}: no layer has it")
    moments = sorted({(model._order[model._core.find(f"layers.{n}.{v}")], n, v) for v in values for n in chosen[v]})
    for order, _, _ in moments:
        offered = model._support[order]
        if not callable(position) and not offered["shape"].startswith("[S"):
            raise InvalidArgument(f"{offered['name']} is {offered['shape']}, not a row for each token; "
                                  f"expected a function as position, of what to keep")
    keep = position if callable(position) else lambda rows: rows[position]
    found: dict = {v: [] for v in values}
    starts = range(0, len(batch), batch_size)
    for start in progress(starts, len(starts), "activations", show_progress):
        part = batch[start:start + batch_size]
        kept = {}
        with model.trace(part) as t:
            for order, layer, v in moments:
                own = t._parts(model._support[order]["name"])
                kept[v, layer] = np.stack([keep(rows) for rows in own])
        for v in values:
            found[v].append(np.stack([kept[v, layer] for layer in chosen[v]]))
    whole = {v: np.concatenate(parts, axis=1) for v, parts in found.items()}
    return whole[value] if isinstance(value, str) else whole


def target_probabilities(model, prompts, edit) -> dict[str, np.ndarray]:
    batch = [prompts] if isinstance(prompts, Prompt) else list(prompts)
    groups = list(batch[0].targets) if batch else []
    for n, prompt in enumerate(batch):
        if sorted(prompt.targets) != sorted(groups):
            raise InvalidArgument(f"prompt {n} has targets {sorted(prompt.targets)}; "
                                  f"expected {sorted(groups)}, as prompt 0 has")
    probs = model.next_token_probs(batch, edit)
    each = [prompt.probabilities(row) for prompt, row in zip(batch, probs)]
    return {group: np.array([p[group] for p in each]) for group in groups}
