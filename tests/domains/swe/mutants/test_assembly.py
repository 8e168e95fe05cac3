"""How a task is put together."""

from __future__ import annotations

from typing import Any

import pytest

from textagent_gym.domains.swe.mutants import assembly


def test_only_what_keeps_an_agent_in_is_searched_for_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sandbox, a search takes hours, and finds the right code on this machine."""
    searched = []

    def search(sandbox: str, texts: Any) -> tuple[str, ...]:
        searched.append(sandbox)
        return ("copy",)

    monkeypatch.setattr(assembly, "_search", search)
    repository: Any = None  # Of no recipes, nothing is read.
    answers = [assembly.copies_elsewhere(name, repository, ()) for name in ("process", "ray:process", "auto")]
    assert (answers, searched) == ([(), (), ("copy",)], ["auto"])
