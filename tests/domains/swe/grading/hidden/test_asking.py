"""Many probes are asked together, and none of them takes the answers of the others along."""

from __future__ import annotations

from pathlib import Path

import pytest

from textagent_gym.domains.swe.grading.hidden import asking
from textagent_gym.domains.swe.grading.hidden.asking import Asker, Trees
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.sandbox import make_sandbox

PROBE = "def test_probe():\n"
PLAIN = PROBE + "    witness.see(0, {number})\n"
WAITING = (
    PROBE + "    for _ in range(2):\n        try:\n            while True: pass\n        except TimeoutError: pass\n"
)
STUCK = PROBE + "    import signal\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True: pass\n"
LONG = PROBE + "    for site in range(15): witness.see(0, 'x' * 190_000)\n"


def test_who_waits_or_says_much_is_asked_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_START", 3.0)
    (tmp_path / "tests").mkdir()
    texts = [PLAIN.format(number=1), WAITING, STUCK, LONG, LONG, PLAIN.format(number=2)]
    like = Version("tests/test_it.py::test_it", True, "tests/test_it.py", texts[0], "", False, ("see",))
    box = make_sandbox("process", toolbox=TOOLBOX)
    try:
        asker = Asker((box, box), Trees((tmp_path,), {}, (".",)))
        seen = asker.ask(like, texts, right=True, each=0.3)
        many = asker.ask(like, texts[:1] * 150, right=True, each=0.3)
    finally:
        box.close()
    first, waiting, stuck, long, longer, last = seen
    assert stuck is None
    assert (first.events, last.events) == (((0, ["i", "0x1"]),), ((0, ["i", "0x2"]),))
    assert waiting is not None
    assert len(long.events) == len(longer.events) == 15
    assert many == [first] * 150


def test_what_a_busy_machine_keeps_from_answering_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_PATIENCE", 20.0)
    monkeypatch.setattr(asking, "_HOPELESS", 2)
    (tmp_path / "tests").mkdir()
    endless = [f"{PROBE}    while True: {number}\n" for number in range(4)]
    texts = [f"{PROBE}    import time\n    time.sleep(0.5)\n    witness.see(0, {number})\n" for number in range(4)]
    like = Version("tests/test_it.py::test_it", True, "tests/test_it.py", texts[0], "", False, ("see",))
    asked: list[float] = []
    ask_once = Asker._ask_once

    def counted(self: Asker, *arguments: object, **named: object) -> object:
        asked.append(named["each"])  # type: ignore[arg-type]
        return ask_once(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Asker, "_ask_once", counted)
    box = make_sandbox("process", toolbox=TOOLBOX)
    try:
        asker = Asker((box, box), Trees((tmp_path,), {}, (".",)))
        late = asker.ask(like, texts, right=True, each=0.25)
        never = asker.ask(like, endless, right=True, each=0.25)
        given_up = asker.ask(like, texts, right=True, each=0.25)
        others = asker.ask(like, texts[:1], right=False, each=0.25)
    finally:
        box.close()
    assert [one.events for one in late if one] == [((0, ["i", hex(number)]),) for number in range(4)]
    assert [one is None or one.end == "builtins.TimeoutError" for one in [*never, *given_up]] == [True] * 8
    assert others == late[:1]
    again = [each for each in asked if each > 0.25]
    assert again == [5.0] * 7
