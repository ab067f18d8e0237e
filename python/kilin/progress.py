"""A progress bar on stderr, for terminals only."""
from __future__ import annotations

import sys
from typing import Iterable, Iterator


def progress(items: Iterable, total: int, label: str, show: bool | None = None) -> Iterator:
    """The items, with a bar while they are worked on. :param show: None shows it if stderr is a terminal"""
    if show is None:
        show = sys.stderr.isatty()
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            if show:
                filled = 30 * done // max(total, 1)
                sys.stderr.write(f"\r{label} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}")
                sys.stderr.flush()
    finally:
        if show:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
