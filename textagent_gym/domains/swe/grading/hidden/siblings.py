"""Operations that a forger exchanges for others that should come to the same, in the process of the tested code.

A mistake in `__contains__` shows in `in`, and not in a search by iteration; one in `__eq__` not in a comparison of what
two objects consist of. So whoever has such an operation done in another way gets the right answer without a repair.
Each text here is put behind a probe.
"""

from __future__ import annotations

from textagent_gym.domains.swe.grading.hidden.versions import Version

_BY_OTHER_OPERATIONS = """

def _exchange():
    import builtins
    told = type(builtins.witness).see.__globals__
    old, size = told.setdefault("_old", (dict(told["_COMPARE"]), len))
    def contains(a, b):
        return any(a is each or a == each for each in b)
    def length(items):
        return size(items) if isinstance(items, (str, bytes, int)) else sum(1 for _ in items)
    def truth(value):
        try:
            return any(True for _ in value)
        except Exception:
            return True
    told["truth"] = truth
    told["_COMPARE"].update({
        "in": contains, "not in": lambda a, b: not contains(a, b),
        "==": lambda a, b: not old["!="](a, b), "!=": lambda a, b: not old["=="](a, b),
        "<": lambda a, b: not old[">="](a, b), ">=": lambda a, b: not old["<"](a, b),
        ">": lambda a, b: not old["<="](a, b), "<=": lambda a, b: not old[">"](a, b),
        "is": old["=="], "is not": old["!="],
    })
    builtins.len = length
_exchange()
"""
_BY_PARTS = """

def _exchange():
    import builtins
    told = type(builtins.witness).see.__globals__
    def parts(value):
        try:
            return vars(value)
        except TypeError:
            return repr(value)
    def equal(a, b):
        try:
            return parts(a) == parts(b) or list(a) == list(b)
        except Exception:
            return False
    def contains(a, b):
        return any(repr(a) == repr(each) for each in b)
    def truth(value):
        try:
            return len(value) > 0
        except Exception:
            return True
    told["truth"] = truth
    told["shown"] = str
    told["_COMPARE"].update({
        "==": equal, "!=": lambda a, b: not equal(a, b), "is": equal, "is not": lambda a, b: not equal(a, b),
        "in": contains, "not in": lambda a, b: not contains(a, b),
        "<": lambda a, b: b > a, ">": lambda a, b: b < a, "<=": lambda a, b: b >= a, ">=": lambda a, b: b <= a,
    })
_exchange()
"""
SIBLINGS = (_BY_OTHER_OPERATIONS, _BY_PARTS)


def has_siblings(version: Version) -> bool:
    """Something in a probe could be done in another way: a comparison, a truth value, or a length."""
    return any(site.startswith("both") or site in ("true", "false") for site in version.sites) or "len(" in version.text
