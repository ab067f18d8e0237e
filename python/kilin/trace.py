"""A trace: prompts whose forward pass runs interleaved with the body of a `with`."""
from __future__ import annotations

from typing import Sequence

import numpy as np

from . import _kilin, paths
from .arrays import Array, Saved, Stand
from .errors import InvalidArgument, OutOfOrder


class _Stop(Exception):
    """Leaves the body of a trace; see Trace.stop."""


class StepView:
    """The values of one step, as attributes under their standard names and the checkpoint's own paths.

    Arrays lead with the prompts: [B, S, ...], where S are the tokens of the step. `support()` lists all names with shapes.
    """

    def __init__(self, trace: "Trace", index: int):
        self.__dict__["_trace"] = trace
        self.__dict__["index"] = index

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._get(name)

    def __setattr__(self, name: str, value) -> None:
        if name in self.__dict__ or name.startswith("_"):
            self.__dict__[name] = value
        else:
            self._set(name, value)

    def __dir__(self):
        return sorted({*object.__dir__(self), "layers", "model", "logits", "norm", "input_ids", "token_embeddings",
                       "next_token_probs"})

    def value(self, name: str) -> Array | None:
        """The value of that name, such as "layers.3.layer_output": waits until the pass has come to it."""
        return self._trace._wait(self._trace._model._core.find(name), self.index)

    def _get(self, path: str):
        name = self._trace._model._resolve(path)
        return paths.node(self, path) if name is None else self._trace._wait(name, self.index)

    def _set(self, path: str, value) -> None:
        name = self._trace._model._resolve(path)
        if name is None:
            raise AttributeError(f"{path} is a module; assign to one of its values")
        paths.assign(self._trace._wait(name, self.index), name, value)

    def _layers(self) -> int:
        return self._trace._model.num_layers

    def _support(self):
        return self._trace._model._support

    # --- edits that take several values ---

    def _numbers(self, layers: int | Sequence[int]) -> list[int]:
        """Layers in the order of the pass; negative numbers count from the last."""
        chosen, count = [layers] if np.isscalar(layers) else layers, self._layers()
        for layer in chosen:
            if not -count <= layer < count:
                raise InvalidArgument(f"there is no layer {layer}; expected {-count} to {count - 1}")
        return sorted({layer % count for layer in chosen})

    def steer(self, layers: int | Sequence[int], vector, factor: float = 1.0, position=slice(None)) -> None:
        """Adds `factor * vector` to the stream after each of the layers: layer_output[:, position] += factor * vector.

        :param vector: [hidden_size], or what broadcasts to [B, positions, hidden_size]
        :param position: an index or slice of the step's tokens; -1 is the last
        """
        for layer in self._numbers(layers):
            output = self.layers[layer].layer_output
            output[:, position] += np.float32(factor) * np.asarray(vector, np.float32)

    def skip_layers(self, first: int, last: int) -> None:
        """The stream after layer `last` becomes what it was before layer `first`, as if the layers first..last, both
        included, were not there."""
        if not 0 <= first <= last < self._layers():
            raise InvalidArgument(f"layers {first} to {last} can't be skipped; expected 0 <= first <= last < {self._layers()}")
        before = self.layers[first].layer_input.save()
        self.layers[last].layer_output = before

    def ablate_experts(self, layers: int | Sequence[int], experts: int | Sequence[int], mode: str = "reroute") -> None:
        """Takes experts away from MoE layers.

        :param mode: "reroute": their router logits become -inf, so that others take their place and weights are renormalised;
            "zero": the choice stays, and their weights become 0
        """
        if mode not in ("reroute", "zero"):
            raise InvalidArgument(f"mode is {mode!r}; expected 'reroute' or 'zero'")
        chosen, count = np.atleast_1d(np.asarray(experts)), self._trace._model.config["num_experts"]
        for expert in chosen[(chosen < 0) | (chosen >= count)][:1]:
            raise InvalidArgument(f"there is no expert {expert}; expected 0 to {count - 1}")
        for layer in self._numbers(layers):
            mlp = self.layers[layer].mlp
            if mode == "reroute":
                # The selection adds a bias to the sigmoid: one with a large bias may be chosen still, with a weight of 0.
                mlp.router_logits[..., chosen] = -np.inf
            else:
                hit = np.isin(np.asarray(mlp.expert_indices), chosen)
                mlp.expert_weights[hit] = 0


class Trace(StepView):
    """What `model.trace` gives. The body of the `with` runs interleaved with the forward pass: reading a value waits until the
    pass has come to it, and the pass waits there until a later one is read. So values are read in the order of the pass.

    After the block, `logits` and `next_token_probs` can still be read, in this order: the pass goes on to them then, and only
    then. It keeps its memory until they are read, this object goes, or `close()`.

    The trace's own attributes are those of step 0: the whole prompts, unless they are cut. `step(n)` gives the others.
    """

    def __init__(self, model, prompts: list, cuts: Sequence[int], new_tokens: int, sampling):
        self.__dict__["index"] = 0
        self._model = model
        self._core = _kilin.Trace(model._core, prompts, list(cuts), new_tokens, sampling)
        self._steps = self._core.steps
        self._lengths = [len(ids) for ids in prompts]
        self._cuts = list(cuts)
        self._generates = new_tokens > 0
        self._order = model._order
        self._stand = None
        self._at = (-1, -1)
        self._after = None  # values read after the block, once it has ended

    @property
    def _trace(self) -> "Trace":
        return self

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind, error, traceback) -> bool:
        if kind is not None:
            self.close()
            return kind is _Stop
        if self._core is not None and self._generates:
            self._leave()
            core = self._core
            try:
                core.finish()
            finally:
                self.close()
        self._after = {}
        return False

    def __del__(self):
        if self.__dict__.get("_core") is not None:
            self.close()

    def __repr__(self) -> str:
        return f"<kilin.Trace of {len(self._lengths)} prompts, {self._steps} steps>"

    # --- what there is ---

    @property
    def steps(self) -> int:
        """Parts of the prompts, then new tokens that are fed."""
        return self._steps

    def step(self, index: int) -> StepView:
        """The values of one step: of a part of the prompts, if they are cut, or of a new token."""
        if not 0 <= index < self._steps:
            raise InvalidArgument(f"step {index} is not run; expected 0 to {self._steps - 1}")
        return StepView(self, index)

    @property
    def mask(self) -> np.ndarray:
        """[B, S] bool: which rows of step 0 are tokens, and which are padding on the left of shorter prompts."""
        ends = [self._cuts[0] if self._cuts else length for length in self._lengths]
        return np.arange(max(ends)) >= max(ends) - np.asarray(ends)[:, None]

    @property
    def output_ids(self) -> list[list[int]]:
        """New tokens by prompt, as far as they have come; all of them after the block."""
        return self._output_ids if self._core is None else self._core.output_ids

    def stop(self) -> None:
        """Leaves the body of the `with`, and ends the pass where it stands."""
        raise _Stop()

    def close(self) -> None:
        """Ends the pass where it stands, and gives its memory back. What was read stays as it was read."""
        self._leave()
        core, self._core = self._core, None
        if core is not None:
            self._output_ids = core.output_ids
            core.close()
        if self._after is None:
            self._after = {}

    # --- how values are come by ---

    def _wait(self, name: str, step: int):
        if self._after is not None and name in ("logits", "next_token_probs"):
            return self._after_block(name)
        if self._after is not None:
            raise OutOfOrder(f"{name} is out of order: the trace has ended; read it in the body of the with, and save() it")
        return self._come_to(name, step)

    def _after_block(self, name: str) -> Saved:
        if name not in self._after:
            if self._core is None:
                raise OutOfOrder(f"{name} is out of order: the pass has ended" +
                                 ("; read it before next_token_probs" if "next_token_probs" in self._after else " before it"))
            for value in ("logits", "next_token_probs") if name == "logits" else (name,):
                self._after[value] = self._come_to(value, self._steps - 1).save()
            self.close()
        return self._after[name]

    def _come_to(self, name: str, step: int):
        moment = (step, self._order[name])
        if moment != self._at or self._stand is None:
            if self._core is None:
                raise OutOfOrder(f"{name} is out of order: the trace is closed")
            if step < self._steps and moment >= self._at:  # else the pass stays where it is, and says why
                self._leave()
            parts = self._core.wait_for(name, step)
            self._stand, self._at = Stand(name, parts), moment
        return self._stand.array()

    def _leave(self) -> None:
        stand, self._stand = self.__dict__.get("_stand"), None
        if stand is not None:
            stand.leave()

    # --- states between tokens ---

    def _locate(self, token: int):
        """The step of a token of prompts of one length, its index there, and whether the step ends with it."""
        if len(set(self._lengths)) != 1:
            raise InvalidArgument(f"prompts of {sorted(set(self._lengths))} tokens; states by token need one length")
        length = self._lengths[0]
        if not -length <= token < length:
            raise InvalidArgument(f"there is no token {token}; expected {-length} to {length - 1}")
        token %= length
        bounds = [0, *self._cuts, length]
        step = max(n for n, begin in enumerate(bounds[:-1]) if begin <= token)
        return step, token - bounds[step], token + 1 == bounds[step + 1]

    def _state_after(self, path: str, token: int):
        step, row, is_last = self._locate(token)
        if is_last:
            return self._wait(self._model._core.find(path + ".state_output"), step)
        return self._wait(self._model._core.find(path + ".states"), step)[:, row]

    def _set_state_after(self, path: str, token: int, state) -> None:
        name = self._model._core.find(path + ".state_output")
        step, _, is_last = self._locate(token)
        if not is_last:
            raise InvalidArgument(f"the trace is not cut behind token {token}; "
                                  f"ask for trace(..., cuts=[{token % self._lengths[0] + 1}])")
        paths.assign(self._wait(name, step), name, state)
