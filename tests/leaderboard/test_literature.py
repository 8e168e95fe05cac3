"""Numbers of papers: each says what it is and how it was measured, and none looks like a result of this suite."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from textagent_gym.leaderboard.literature import literature
from textagent_gym.registration import WORLDS


class Papers(HTMLParser):
    """Figures below the heading of the papers: their text, and the text of everything before that heading."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.figures: list[str] = []
        self.before = ""
        self._below = self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._below = self._below or ("id", "literature") in attrs
        if self._below and tag == "figure":
            self._inside = True
            self.figures.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "figure"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.figures[-1] += data
        elif not self._below:
            self.before += data


def test_every_number_of_a_paper_has_its_protocol_and_source() -> None:
    for publication in literature():
        assert publication.world in {world.name for world in WORLDS}
        assert publication.measure in {"success", "score"}
        assert re.fullmatch(r"[0-9A-Z].{20,}\.", publication.protocol), publication.protocol
        assert publication.source
        assert publication.link.startswith("https://")
        assert publication.results


def test_numbers_of_papers_are_percentages_or_points_of_a_hundred() -> None:
    for publication in literature():
        for result in publication.results:
            assert 0 <= result.value <= 100
            assert re.fullmatch(r"(± \d+\.\d)?", result.spread)


def test_a_deviation_is_named_by_the_protocol() -> None:
    for publication in literature():
        if any(result.spread for result in publication.results):
            assert re.search(r"standard (deviation|error)", publication.protocol)


def test_no_paper_names_an_agent_twice() -> None:
    for publication in literature():
        agents = [result.agent for result in publication.results]
        assert len(set(agents)) == len(agents)


def test_every_world_has_numbers_to_compare_with() -> None:
    assert {publication.world for publication in literature()} >= {
        "ALFWorld",
        "BabyAI",
        "ScienceWorld",
        "TextCraft",
        "TextWorld",
    }


def test_papers_stand_apart_from_results_and_are_marked(site: Path) -> None:
    papers = Papers((site / "index.html").read_text(encoding="utf-8"))
    publications = literature()
    assert len(papers.figures) == len(publications)
    assert all("not replayable" in figure for figure in papers.figures)
    for publication in publications:
        assert any(publication.protocol in figure for figure in papers.figures)
        assert publication.source not in papers.before


def test_a_score_is_not_shown_as_a_success(site: Path) -> None:
    papers = Papers((site / "index.html").read_text(encoding="utf-8"))
    scores = [publication for publication in literature() if publication.measure == "score"]
    assert scores
    for publication in scores:
        (figure,) = [figure for figure in papers.figures if publication.protocol in figure]
        table = figure.partition(publication.protocol)[2]
        assert "score of 100" in table
        assert "success" not in table
        assert "%" not in table
