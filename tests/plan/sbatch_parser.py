"""How sbatch reads a `#SBATCH` line, after Slurm's src/sbatch/opt.c, for tests of quoting."""

from __future__ import annotations

import re


def read_line(line: str) -> list[str]:
    assert line.startswith("#SBATCH")
    assert not re.search("(het|pack)job", line, re.IGNORECASE), "would start another component"
    rest = line.removeprefix("#SBATCH")
    words: list[str] = []
    while (rest := rest.lstrip(" \t\r\v\f")) and not rest.startswith("#"):
        word, rest = _read_word(rest)
        words.append(word)
    return words


def _read_word(text: str) -> tuple[str, str]:
    word, quote, escaped = "", "", False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
            continue
        elif quote:
            if character == quote:
                quote = ""
                continue
        elif character in "\"'":
            quote = character
            continue
        elif character in " \t\r\v\f#":
            return word, text[index:]
        word += character
    assert not quote, "unmatched quote"
    return word, ""
