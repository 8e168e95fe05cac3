"""Sizes of files such as "1.5 MiB"."""

import re

_DECIMAL = ["B", "kB", "MB", "GB", "TB"]
_BINARY = ["B", "KiB", "MiB", "GiB", "TiB"]
_SIZE = re.compile(r"([\d_,]*\.?\d+)\s*([a-zA-Z]*)")


def parse_size(text):
    """Bytes of a size, such as "10 kB" (of 1000) or "10 KiB" (of 1024)."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text}")
    number = float(match[1].replace(",", "").replace("_", ""))
    unit = match[2].lower() or "b"
    for base, names in ((1000, _DECIMAL), (1024, _BINARY)):
        lowered = [name.lower() for name in names]
        if unit in lowered:
            return round(number * base ** lowered.index(unit))
    for power, name in enumerate(_DECIMAL):
        if unit == name[0].lower():
            return round(number * 1000**power)
    raise ValueError(f"unknown unit: {match[2]}")


def format_size(count, binary=False, digits=1):
    """A size in the largest unit in which it is at least one."""
    base, names = (1024, _BINARY) if binary else (1000, _DECIMAL)
    sign = "-" if count < 0 else ""
    value = abs(count)
    index = 0
    while value >= base and index < len(names) - 1:
        value /= base
        index += 1
    if index == 0:
        return f"{sign}{value} {names[0]}"
    text = f"{value:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{sign}{text} {names[index]}"
