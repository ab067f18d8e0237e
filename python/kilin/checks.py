"""Checks arguments where callers pass them in. Every error names the thing, its value and what was expected."""
from __future__ import annotations

import operator
from typing import Sequence

import numpy as np

from .errors import Error, InvalidArgument


def whole_number(name: str, value, at_least: int = 0, below: int = 2**63) -> int:
    """A count or an index as an int."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not at_least <= number < below:
        limit = "on" if below == 2**63 else f"to {below - 1}"
        raise InvalidArgument(f"{name} is {value!r:.80}; expected a whole number from {at_least} {limit}")
    return number


def text(name: str, value) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is {value!r:.80}; expected a text")
    return value


def no_nan(what: str, values: np.ndarray) -> np.ndarray:
    """What a model gives without edits, where NaN comes from its weights alone."""
    if np.isnan(values).any():
        raise Error(f"{what} hold NaN; kilin verify looks for broken weights")
    return values


def numbers_of(what: str, chosen, first: int, last: int) -> list[int]:
    """Numbers of layers or experts, from one or several."""
    numbers = np.atleast_1d(np.asarray(chosen)).tolist()
    for n in numbers:
        if not isinstance(n, int) or not first <= n <= last:
            raise InvalidArgument(f"there is no {what} {n!r:.80}; expected {first} to {last}")
    return numbers


def layers_of(count: int, layers: int | Sequence[int]) -> list[int]:
    """Layers by number; negative ones count from the last."""
    return [n % count for n in numbers_of("layer", layers, -count, count - 1)]


def texts(name: str, value: str | Sequence[str]) -> list[str]:
    """One text or several."""
    return [text(name, one) for one in ([value] if isinstance(value, str) else value)]


def numbers_for(array: np.ndarray, name: str, value) -> np.ndarray:
    """Converts numbers to what `array`, the value of that name, can hold; refuses numbers that would change."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf":
        raise InvalidArgument(f"{name} can't be {value!r:.80}; expected numbers")
    if array.dtype.kind == "i":
        limits = np.iinfo(array.dtype)
        for odd in numbers[(numbers != np.floor(numbers)) | (numbers < limits.min) | (numbers > limits.max)][:1]:
            raise InvalidArgument(f"{name} can't be {odd}; expected whole numbers of 32 bits")
    try:
        return np.broadcast_to(numbers, array.shape)
    except ValueError:
        raise InvalidArgument(f"{name} can't be set to an array of {list(numbers.shape)}; "
                              f"expected {list(array.shape)}, or what broadcasts to it") from None
