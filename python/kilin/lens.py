"""The well-known experiments, each a few lines of traces; methods of Model are their doors."""
from __future__ import annotations

import numpy as np

from .errors import InvalidArgument, NotFound, Unavailable
from .progress import progress
from .prompts import Prompt, batch_of


def softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def layers_of(model, layers) -> list[int]:
    """Layers in order. :param layers: None for all"""
    chosen = range(model.num_layers) if layers is None else layers
    for layer in chosen:
        if not 0 <= layer < model.num_layers:
            raise InvalidArgument(f"there is no layer {layer}; expected 0 to {model.num_layers - 1}")
    return list(chosen)


def logit_lens(model, prompts, layers, position: int) -> np.ndarray:
    chosen = layers_of(model, layers)
    rows = {}
    with model.trace(prompts) as t:
        for layer in sorted(set(chosen)):
            rows[layer] = t.layers[layer].layer_output[:, position].save()
    return softmax(model.project_on_vocab(np.stack([rows[layer] for layer in chosen], axis=1)))


def patchscope(model, source, target, layers, source_position, target_position, target_layers) -> np.ndarray:
    chosen = layers_of(model, layers)
    into = chosen if target_layers is None else layers_of(model, target_layers)
    if len(into) != len(chosen):
        raise InvalidArgument(f"there are {len(into)} target_layers; expected {len(chosen)}, one for each layer")
    rows = {}
    with model.trace(source) as t:
        for layer in sorted(set(chosen)):
            rows[layer] = t.layers[layer].layer_output[0, source_position].save()
    probs = []
    for layer, target_layer in zip(chosen, into):
        with model.trace(target) as t:
            t.layers[target_layer].layer_output[:, target_position] = rows[layer]
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
    if batch_size < 1:
        raise InvalidArgument(f"batch_size is {batch_size}; expected 1 at least")
    chosen = {v: [n for n in layers_of(model, layers) if layers is not None or _has(model, n, v)] for v in values}
    for v, held_by in chosen.items():
        if not held_by:
            raise NotFound(f"{v}: no layer has it")
    moments = sorted({(model._order[model._core.find(f"layers.{n}.{v}")], n, v) for v in values for n in chosen[v]})
    keep = position if callable(position) else lambda rows: rows[position]
    found = {v: [] for v in values}
    starts = range(0, len(batch), batch_size)
    for start in progress(starts, len(starts), "activations", show_progress):
        part = batch[start:start + batch_size]
        kept = {}
        with model.trace(part) as t:
            for _, layer, v in moments:
                rows = t.value(f"layers.{layer}.{v}")
                # Shorter prompts are padded on the left: their own rows are the last ones.
                kept[v, layer] = np.stack([np.array(keep(row[len(row) - len(ids):]), subok=False)
                                           for row, ids in zip(rows, part)])
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
