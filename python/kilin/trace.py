"""A trace: prompts whose forward pass runs interleaved with the body of a `with`."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _kilin, paths
from .arrays import LiveValue, Saved
from .checks import layers_of, numbers_for, numbers_of, text, whole_number
from .errors import InvalidArgument, OutOfOrder


class _Stop(Exception):
    """Leaves the body of a trace; see Trace.stop."""


class StepView:
    """The values of one step, as attributes under their standard names and the checkpoint's own paths.

    The first axis of arrays is the prompts: [B, S, ...], where S are the tokens of the step. `support()` lists all names with
    shapes.
    """

    def __init__(self, trace: "Trace", index: int):
        self._of = trace
        self._index = index

    @property
    def _trace(self) -> "Trace":
        return self._of

    @property
    def index(self) -> int:
        """The step's number."""
        return self._index

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._get(name)

    def __setattr__(self, name: str, value) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif hasattr(type(self), name):
            raise AttributeError(f"{name} can't be set")
        else:
            self._set(name, value)

    def __dir__(self):
        return sorted({*object.__dir__(self), "model", *self._names_in("")})

    def value(self, name: str) -> Any:
        """The value of that name, such as "layers.3.layer_output": waits until the pass has reached it. An `Array`, or None for
        the state_input of a fresh prompt."""
        return self._trace._wait(self._trace._model._core.find(text("the name", name)), self.index)

    def _get(self, path: str):
        name = self._trace._model._resolve(path)
        return paths.node(self, path) if name is None else self._trace._wait(name, self.index)

    def _set(self, path: str, value) -> None:
        name = self._trace._model._resolve(path)
        if name is None:
            raise AttributeError(f"{path} is a module; assign to one of its values")
        self._trace._assign(name, self.index, value)

    def _layers(self) -> int:
        return self._trace._model.num_layers

    def _names_in(self, path: str) -> list[str]:
        return self._trace._model._names_in(path)

    def stop(self) -> None:
        """Leaves the body of the `with`, or of the edit, and ends the pass where it is."""
        raise _Stop()

    # --- edits that take several values ---

    def _in_order(self, layers: int | Sequence[int]) -> list[int]:
        return sorted(set(layers_of(self._layers(), layers)))

    def steer(self, layers: int | Sequence[int], vector, factor: float = 1.0, position=slice(None)) -> None:
        """Adds `factor * vector` to the stream after each of the layers: layer_output[:, position] += factor * vector.

        :param layers: one or several; negative numbers count from the last
        :param vector: [hidden_size], or what broadcasts to [B, positions, hidden_size]
        :param position: an index or slice of the step's tokens; -1 is the last. Shorter prompts are padded on the left, so
            count from the end where lengths differ
        """
        addend = np.float32(factor) * np.asarray(vector, np.float32)
        for layer in self._in_order(layers):
            output = self.layers[layer].layer_output
            output[:, position] += addend

    def skip_layers(self, first: int, last: int) -> None:
        """Replaces the stream after layer `last` by the stream before layer `first`, as if the layers first..last, both
        included, were not there. Negative numbers count from the last."""
        begin, end = layers_of(self._layers(), [first, last])
        if begin > end:
            raise InvalidArgument(f"layers {first} to {last} can't be skipped; expected the first one first")
        before = self.layers[begin].layer_input.save()
        self.layers[end].layer_output = before

    def ablate_experts(self, layers: int | Sequence[int], experts: int | Sequence[int], mode: str = "reroute") -> None:
        """Takes experts away from MoE layers.

        :param layers: one or several; negative numbers count from the last
        :param mode: "reroute": their router logits become -inf, so that others take their place and weights are renormalised;
            "zero": they stay chosen, and their weights become 0
        """
        if mode not in ("reroute", "zero"):
            raise InvalidArgument(f"mode is {mode!r}; expected 'reroute' or 'zero'")
        chosen = numbers_of("expert", experts, 0, self._trace._model.config["num_experts"] - 1)
        for layer in self._in_order(layers):
            mlp = self.layers[layer].mlp
            if mode == "reroute":
                # The selection adds a bias to the sigmoid: an expert with a large bias may still be chosen, with a weight of 0.
                mlp.router_logits[..., chosen] = -np.inf
            else:
                hit = np.isin(np.asarray(mlp.expert_indices), chosen)
                mlp.expert_weights[hit] = 0


class Trace(StepView):
    """What `model.trace` gives. The body of the `with` runs interleaved with the forward pass: reading a value waits until the
    pass has reached it, and the pass waits there until a later one is read. So values are read in the order of the pass.

    After the block, `logits` and `next_token_probs` can still be read, in this order; only then does the pass go on to them. It
    keeps its memory until they are read, this object is deleted, or `close()` is called.

    The trace's own attributes are those of step 0 (the whole prompts unless they are cut), and after the block those of the
    last step. `step(n)` gives the others.
    """

    def __init__(self, model, prompts: list, cuts: Sequence[int], new_tokens: int, sampling):
        self._core = None  # for __del__, where the next line raises
        self._model = model
        self._core = _kilin.Trace(model._core, prompts, list(cuts), new_tokens, sampling)
        self._steps = self._core.steps
        self._lengths = [len(ids) for ids in prompts]
        self._cuts = list(cuts)
        self._generates = new_tokens > 0
        self._order = model._order
        self._live: LiveValue | None = None
        self._at = (-1, -1)
        self._after: dict[str, Saved] | None = None  # values read after the block, once the block has ended

    @property
    def _trace(self) -> "Trace":
        return self

    @property
    def index(self) -> int:
        """The step whose values are this object's attributes."""
        return 0 if self._after is None else self._steps - 1

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
        if self._core is not None:
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
        if whole_number("step", index) >= self._steps:
            raise InvalidArgument(f"step {index} is not run; expected 0 to {self._steps - 1}")
        return StepView(self, index)

    @property
    def mask(self) -> np.ndarray:
        """[B, S] bool: True where a row of step 0 is a token, False where it is padding on the left of a shorter prompt."""
        ends = [self._cuts[0] if self._cuts else length for length in self._lengths]
        return np.arange(max(ends)) >= max(ends) - np.asarray(ends)[:, None]

    @property
    def output_ids(self) -> list[list[int]]:
        """New tokens made so far, by prompt; all of them after the block."""
        return self._output_ids if self._core is None else self._core.output_ids

    def close(self) -> None:
        """Ends the pass where it is, and frees its memory. Values that were read stay valid."""
        self._leave()
        core, self._core = self._core, None
        if core is not None:
            self._output_ids = core.output_ids
            core.close()
        if self._after is None:
            self._after = {}

    # --- how values are read ---

    def _wait(self, name: str, step: int) -> Any:
        if self._after is None:
            live = self._come_to(name, step)
            return None if live.is_blank else live.array()
        if name in ("logits", "next_token_probs") and step == self._steps - 1:
            return self._after_block(name, self._after)
        raise OutOfOrder(f"{name} is out of order: the trace has ended; read it in the body of the with, and save() it")

    def _assign(self, name: str, step: int, value) -> None:
        """array[...] = value, unless value is that array already, as after an in-place operator."""
        if self._after is not None:
            raise OutOfOrder(f"{name} can't be written: the trace has ended; write in the body of the with")
        live = self._come_to(name, step)
        array = live.array()
        if isinstance(value, np.ndarray) and value.shape == array.shape and value.strides == array.strides \
                and value.__array_interface__["data"][0] == array.__array_interface__["data"][0]:
            return
        if not array.flags.writeable:
            raise InvalidArgument(f"{name} can't be written: nothing is computed from it")
        array[...] = numbers_for(array, name, value)
        live.is_blank = False

    def _parts(self, name: str, step: int = 0) -> list[np.ndarray]:
        """The value of each prompt without padding, in the model's memory: valid until the next value is read."""
        live = self._come_to(name, step)
        if live.is_blank:
            raise InvalidArgument(f"{name}: a fresh prompt has none")
        return live.parts

    def _after_block(self, name: str, after: dict[str, Saved]) -> Saved:
        if name not in after:
            if self._core is None:
                raise OutOfOrder(f"{name} is out of order: the pass has ended" +
                                 ("; read it before next_token_probs" if "next_token_probs" in after else " before it"))
            for value in ("logits", "next_token_probs") if name == "logits" else (name,):
                after[value] = self._come_to(value, self._steps - 1).array().save()
            self.close()
        return after[name]

    def _come_to(self, name: str, step: int) -> LiveValue:
        moment = (step, self._order[name])
        if moment != self._at or self._live is None:
            if self._core is None:
                raise OutOfOrder(f"{name} is out of order: the trace is closed")
            if step < self._steps and moment >= self._at:  # else the pass stays where it is, and says why
                self._leave()
            self._live, self._at = LiveValue(name, *self._core.wait_for(name, step)), moment
        return self._live

    def _leave(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.leave()

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
        self._assign(name, step, state)
