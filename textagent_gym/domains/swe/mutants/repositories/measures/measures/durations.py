"""Durations such as "1h 30m"."""

import re

UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2})")
_NAMES = {"week": "w", "day": "d", "hour": "h", "hr": "h", "minute": "m", "min": "m", "second": "s", "sec": "s"}


def unit_of(name):
    """The letter of a unit: "hours", "hour" and "h" are all "h"."""
    name = name.lower()
    if name in UNITS:
        return name
    if len(name) > 1 and name.endswith("s"):
        name = name[:-1]
    if name not in _NAMES:
        raise ValueError(f"unknown unit: {name}")
    return _NAMES[name]


def parse_duration(text):
    """Seconds of a duration, such as "1h 30m", "2 days" or "1:02:03"."""
    text = text.strip().lower()
    if not text:
        raise ValueError("empty duration")
    negative = text.startswith("-")
    if negative:
        text = text[1:].strip()
    clock = _CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        if minutes > 59 or seconds > 59:
            raise ValueError(f"not a time: {text}")
        total = hours * 3600 + minutes * 60 + seconds
    else:
        rest = _PART.sub("", text).replace(",", "").replace("and", "").strip()
        if rest:
            raise ValueError(f"not a duration: {text}")
        total = sum(float(number) * UNITS[unit_of(unit)] for number, unit in _PART.findall(text))
        if total == int(total):
            total = int(total)
    return -total if negative else total


def format_duration(seconds, largest="w", parts=None):
    """A duration in words, such as "1h 30m"; `parts` limits how many units are shown."""
    if seconds < 0:
        return "-" + format_duration(-seconds, largest, parts)
    found = []
    started = False
    for unit, size in UNITS.items():
        started = started or unit == largest
        if not started:
            continue
        count, seconds = divmod(seconds, size)
        if count:
            found.append(f"{int(count)}{unit}")
    if parts is not None:
        found = found[:parts]
    return " ".join(found) or "0s"
