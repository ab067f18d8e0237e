"""A progress bar on stderr, for terminals only."""
from __future__ import annotations

import os
import shutil
import sys
from typing import Iterable, Iterator


def progress(items: Iterable, total: int, label: str, show: bool | None = None) -> Iterator:
    """The items, with a bar while they are worked on. :param show: None shows it if stderr is a terminal that can take it back"""
    if show is None:
        show = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            if show:
                figures = f"{done}/{total}"
                width = min(30, max(0, shutil.get_terminal_size().columns - len(label) - len(figures) - 5))
                filled = width * done // max(total, 1)
                sys.stderr.write(f"\r{label} [{'#' * filled}{'.' * (width - filled)}] {figures}")
                sys.stderr.flush()
    finally:
        if show:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
