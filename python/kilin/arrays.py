"""Arrays of a trace: NumPy arrays that share the model's own memory while the forward pass waits there.

When the pass goes on, every `Array` that is still referred to, and every slice of one, gets a copy of the memory as it was, so
that it never shows other values. Objects that are no longer an `Array` get no copy: np.asarray(x), a memoryview, a tensor that
another library made by DLPack. Those are valid while the pass waits; copy them to keep them.
"""
from __future__ import annotations

import weakref

import numpy as np

from . import _kilin


class _Values(np.ndarray):
    """Makes results of operators `Saved`, or plain numbers: they have memory of their own."""

    def __array_wrap__(self, result, context=None, return_scalar=False):
        if result is self:
            return self
        plain = np.asarray(result)
        return plain[()] if plain.ndim == 0 else plain.view(Saved)


class Saved(_Values):
    """A copy that stays valid after the trace: an array, which `value` gives as a plain one."""

    @property
    def value(self) -> np.ndarray:
        return self.view(np.ndarray)

    def save(self) -> Saved:
        """Returns itself: it stays valid already."""
        return self


class Array(_Values):
    """A value of the model where the pass waits, [prompts, ...], float32 or int32; the model goes on with what is written into
    it. Shares the model's memory without a copy; prompts of several lengths are gathered, and padded on the left."""

    _live: LiveValue | None = None

    def __array_finalize__(self, obj):
        live = getattr(obj, "_live", None)
        if live is not None:
            live.track(self)

    def __reduce__(self):
        return np.array(self, subok=False).__reduce__()

    def save(self) -> Saved:
        """A copy of the present values, which stays valid."""
        return np.array(self, subok=False).view(Saved)


class LiveValue:
    """One value of one step, from when the pass reaches it until the pass goes on.

    Prompts of one length whose rows lie side by side in the model's memory are one array of that memory. Others are gathered
    into a separate array, padded on the left to the longest prompt, and what was written there is copied back when the pass
    goes on; so `x[:, -1]` is the last token of every prompt. Padding holds zeros, -inf in scores; `Trace.mask` tells where it
    is.
    """

    def __init__(self, name: str, parts: list[np.ndarray], is_blank: bool):
        self.parts = parts  #: by prompt, without padding; valid as long as the pass waits, and not written beside `array`
        self.is_blank = is_blank  #: a state_input of prompts that have none yet, unless one is written
        self._views: dict[int, weakref.ref] = {}
        first, size = parts[0], parts[0].shape[0] * parts[0].strides[0]
        address = first.__array_interface__["data"][0]
        self._is_gathered = not all(part.shape == first.shape and part.strides == first.strides
                                    and part.__array_interface__["data"][0] == address + n * size
                                    for n, part in enumerate(parts))
        if not self._is_gathered:
            self._whole = np.lib.stride_tricks.as_strided(first, (len(parts), *first.shape), (size, *first.strides),
                                                          writeable=first.flags.writeable)
            return
        longest = tuple(max(sizes) for sizes in zip(*(part.shape for part in parts)))
        fill = -np.inf if name.endswith("attention_scores") else 0
        self._whole = np.full((len(parts), *longest), fill, first.dtype)
        for row, part in zip(self._whole, parts):
            row[self._place(part, row)] = part
        self._whole.flags.writeable = first.flags.writeable

    @staticmethod
    def _place(part: np.ndarray, row: np.ndarray) -> tuple[slice, ...]:
        return tuple(slice(longest - size, None) for longest, size in zip(row.shape, part.shape))

    def array(self) -> Array:
        array = self._whole.view(Array)
        if not self._is_gathered:
            self.track(array)
        return array

    def track(self, array: Array) -> None:
        array._live = self
        key = id(array)
        self._views[key] = weakref.ref(array, lambda _: self._views.pop(key, None))

    def leave(self) -> None:
        """Before the pass goes on: copies gathered values back, and gives arrays that still refer to the memory their own
        copy."""
        if self._is_gathered and self._whole.flags.writeable:
            for row, part in zip(self._whole, self.parts):
                part[...] = row[self._place(part, row)]
        live = [view for view in (ref() for ref in list(self._views.values())) if view is not None]
        if live:
            _kilin.detach(self._whole, live)
        for view in live:
            view._live = None
        self._views.clear()
