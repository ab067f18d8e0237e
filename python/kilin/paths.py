"""Names as attributes: t.layers[3].self_attn.attention_scores, t.model.layers[0].self_attn.q_proj.output."""
from __future__ import annotations

import operator
from typing import Any, Iterator

from .errors import NotFound

_MODULES = {"self_attn", "linear_attn", "mlp", "block_sparse_moe"}


def resolve(find, path: str):
    """The standard name of the value that `path` means, or None if it is a module on the way to some.

    Raises Unavailable for a value that the block lacks, AttributeError for a name that no block has.
    """
    last = path.rsplit(".", 1)[-1]
    if path in ("model", "layers", "model.layers", "model.norm") or last in _MODULES:
        return None
    try:
        return find(path)
    except NotFound as error:
        unknown = error
    try:
        find(path + ".output")  # then it is a module, and that is one of its values
        return None
    except NotFound:
        raise AttributeError(str(unknown)) from None


def names_in(resolve, names: list[str], path: str) -> list[str]:
    """The names that can follow a path, for dir(). :param names: all standard names"""
    if path in ("", "model"):
        return sorted({name.split(".")[0] for name in names})
    layer = ".".join(path.removeprefix("model.").split(".")[:2]) + "."
    found = set()
    for name in names:
        words = name.removeprefix(layer).split(".") if name.startswith(layer) else []
        for n, word in enumerate(words):  # the checkpoint's modules have the values of the standard ones
            try:
                resolve(".".join([path, *words[n:]]))
                found.add(word)
            except AttributeError:
                pass
    return sorted(found)


class Node:
    """A module of the model in one step of a trace. Its values are attributes: reading one waits until the pass has reached it;
    assigning to one changes what the model goes on with. dir() lists them."""

    __slots__ = ("_view", "_path")

    def __init__(self, view, path: str):
        object.__setattr__(self, "_view", view)
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._view._get(f"{self._path}.{name}")

    def __setattr__(self, name: str, value) -> None:
        self._view._set(f"{self._path}.{name}", value)

    def __repr__(self) -> str:
        return f"<{self._path} of step {self._view.index}>"

    def __dir__(self):
        return self._view._names_in(self._path)


class Layers(Node):
    """The decoder layers, counted from 0; negative numbers count from the last. A slice is a list of layers."""

    __slots__ = ()

    def __len__(self) -> int:
        return self._view._layers()

    def __getitem__(self, layer: Any) -> Any:
        count = len(self)
        if isinstance(layer, slice):
            return [self[n] for n in range(*layer.indices(count))]
        n = operator.index(layer)
        if not -count <= n < count:
            raise IndexError(f"there is no layer {n}; expected {-count} to {count - 1}")
        return Node(self._view, f"{self._path}.{n % count}")

    def __iter__(self) -> Iterator[Node]:
        return (self[layer] for layer in range(len(self)))


class Attention(Node):
    """Attention of one layer; in a KDA block it holds a state between tokens."""

    __slots__ = ()

    def state_after(self, token: int):
        """The KDA state [prompts, heads, head_dim (of keys), head_dim (of values)] after a token, counted from 0 (negative:
        from the end). If the trace is cut after it (`cuts=[token + 1]`) or it is the last token, that is `state_output`; else
        the layer computes its `states`."""
        return self._view._trace._state_after(self._path, token)

    def set_state_after(self, token: int, state) -> None:
        """Replaces the state after `token`. The trace must be cut there (`cuts=[token + 1]`), so that the tokens that follow
        read it; generation goes on with the last token's state."""
        self._view._trace._set_state_after(self._path, token, state)


def node(view, path: str) -> Node:
    last = path.rsplit(".", 1)[-1]
    if last == "layers":
        return Layers(view, path)
    return (Attention if last in ("linear_attn", "self_attn") else Node)(view, path)
