"""The setting `debug_dir`: a folder for each compile, with all that was made on the way."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from . import config

_numbers = itertools.count()


def is_wanted() -> bool:
    """Whether there is such a folder."""
    return config.debug_dir != "none"


def save(name: str, texts: dict[str, str]) -> None:
    """Write texts, by the names of their files, to a new folder of the setting's. name: of the
    compiled function."""
    word = re.sub(r"\W+", "_", name).strip("_") or "program"
    for number in _numbers:  # another process may have taken some
        folder = Path(config.debug_dir) / f"{number:04}_{word}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        break
    for file, text in texts.items():
        (folder / file).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
