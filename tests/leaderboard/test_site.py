"""The site: what it shows, what it leaves out, and what a stranger's text cannot do in it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import astuple, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.evaluation.results import SUITE, read, summarize_again, write
from tests.leaderboard.results import ATTACK, NAME
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import SUITES, compare, evaluate_suite, load_result, summarize, verify_result
from textagent_gym.evaluation.results import IDENTITY, records_of
from textagent_gym.leaderboard import build, check_entry, find_results
from textagent_gym.leaderboard.entries import LONGEST_NAME, shown_name
from textagent_gym.leaderboard.site import MARKER, Row, comparisons, write_pages
from textagent_gym.leaderboard.trajectories import LONGEST_TEXT, bounded
from textagent_gym.terminal import one_line, visible

UNLIMITED = {"episode_turns": None, "episode_tokens": None, "episode_cost": None, "price_input": 2.5, "hints": False}
"""Settings of a model that is asked without limits."""
FLAG = "Part four: its actions are the oracle's in 9 of 9 turns."
HANDLER = re.compile(r"on[a-z]+")


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(site: Path) -> list[tuple[Path, Tags]]:
    return [(path, Tags(path.read_text(encoding="utf-8"))) for path in sorted(site.rglob("*.html"))]


def data(path: Path) -> object:
    """What a script of data hands to the page."""
    match = re.fullmatch(r'textagent\.receive\("([^"]+)", (".*")\);\n', path.read_text(encoding="ascii"), re.S)
    assert match
    assert path.as_posix().endswith(f"data/{match[1]}.js")
    return json.loads(json.loads(match[2]))


def test_a_result_that_is_not_right_is_left_out_with_the_reason(results: Path, tmp_path: Path) -> None:
    (results / "empty").mkdir(exist_ok=True)
    entries, left_out = build(results, tmp_path / "site", episodes=0)
    assert [entry.result.agent for entry in entries] == ["admissible-random", NAME, "oracle"]
    assert [each.folder for each in left_out] == ["liar"]
    assert "success is False, and True is recorded" in left_out[0].reasons[0]
    assert "success is False" in Tags((tmp_path / "site" / "about.html").read_text()).text
    assert "liar" not in (tmp_path / "site" / "index.html").read_text()


def test_nobody_gains_a_place_by_episodes_that_broke(results: Path, tmp_path: Path) -> None:
    """Nobody can check that they did, so losses may be among them."""
    folder = shutil.copytree(results / SUITE.name, tmp_path / "results") / "admissible-random"
    (folder / IDENTITY).write_text((folder / IDENTITY).read_text().replace("admissible-random", "my-model"))
    for part in SUITE.parts:
        records = records_of(folder, part)
        values = read(records)
        values[0]["agent"] = "my-model"  # Whoever plays like an agent of the suite under its name is asked.
        for episode in values[1:]:
            if not episode["success"]:
                episode.update(broken="the server is gone", terminated=False, truncated=True)
                episode["rewards"][-1] = 4321.0  # What broke is not played again.
        write(records, values)
    summarize_again(folder)
    build(tmp_path / "results", tmp_path / "site", episodes=0)
    text = Tags((tmp_path / "site" / "index.html").read_text()).text
    success = sum(episode.success for episode in load_result(folder).episodes) / SUITE.episodes
    assert f"broken: {success:.1%} if these are lost" in text
    assert text.index("100.0%", text.index("oracle")) < text.index("my-model")
    assert not [page for page in (tmp_path / "site").rglob("*.html") if "4321" in page.read_text()]


def test_an_agents_name_shows_what_cannot_be_seen_in_one_line() -> None:
    assert shown_name("ora\u200bcle\u202e\n\u2028") == "ora\\u200bcle\\u202e␊\\u2028"
    assert len(shown_name("\u200b" * 500)) <= LONGEST_NAME + 1
    assert one_line("one\ntwo\tthree") == "one␊two␉three"


def test_a_success_is_never_shown_without_its_interval(site: Path) -> None:
    page = (site / "index.html").read_text()
    table = page[page.index('id="results"') :]
    shares = re.findall(r'class="success">([\d.]+%) <small>(.*?)</small>', table)
    assert len(shares) == 3
    assert all(re.fullmatch(r"\[[\d.]+, [\d.]+\]", bounds) for _, bounds in shares)


def test_numbers_are_those_of_the_result(site: Path, results: Path) -> None:
    result = load_result(results / SUITE.name / "admissible-random")
    summary = summarize(result.episodes)
    success, turns = summary.success, summary.turns
    page = (site / "index.html").read_text()
    assert f"{100 * success.mean:.1f}% <small>[{100 * success.low:.1f}, {100 * success.high:.1f}]</small>" in page
    assert f"{turns.mean:.1f} <small>[{turns.low:.1f}, {turns.high:.1f}]</small>" in page


def test_no_mean_of_a_result_is_shown_without_its_interval(site: Path, results: Path) -> None:
    entry = check_entry(results / SUITE.name / "admissible-random")
    for name, evaluation in entry.result.evaluations.items():
        summary = summarize(evaluation.episodes, unit_returns=evaluation.unit_returns)
        assert summary.invalid_share is not None
        page = (site / "results" / f"{entry.slug}.html").read_text()
        row = next(row for row in page.split("<tr>") if row.startswith(f'<th scope="row">{name}</th>'))
        assert f"{summary.turns.mean:.1f} <small>[{summary.turns.low:.1f}, {summary.turns.high:.1f}]</small>" in row
        low, high = (f"{100 * bound:.1f}" for bound in (summary.invalid_share.low, summary.invalid_share.high))
        assert f"{100 * summary.invalid_share.mean:.1f}% <small>[{low}, {high}]</small>" in row


def test_tokens_have_a_column_where_some_were_counted(results: Path, site: Path, tmp_path: Path) -> None:
    assert all("tokens per episode" not in tags.text for path, tags in pages(site) if path.parent.name == "agents")
    entry = check_entry(results / SUITE.name / "oracle")
    evaluations = {
        part: replace(evaluation, episodes=tuple(replace(episode, tokens=7) for episode in evaluation.episodes))
        for part, evaluation in entry.result.evaluations.items()
    }
    write_pages(tmp_path, [replace(entry, result=replace(entry.result, evaluations=evaluations))], [], "Tokens")
    (page,) = (tmp_path / "agents").glob("*.html")
    text = Tags(page.read_text(encoding="utf-8")).text
    assert "tokens per episode" in text
    assert re.search(r"\b7 \[", text)


def test_an_agents_page_shows_returns_over_density_where_the_same_tasks_were_played_at_several(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all("reward density" not in tags.text for _, tags in pages(site))
    parts = [replace(SUITE.parts[0], name=str(n), kwargs={"reward_density": n}) for n in (0.0, 1.0)]
    suite = replace(SUITE, name="lights-density-v1", parts=tuple(parts))
    monkeypatch.setitem(SUITES, suite.name, suite)
    result = evaluate_suite(suite, "admissible-random", tmp_path / "results" / "random")
    build(tmp_path / "results", tmp_path / "site", episodes=0)
    (page,) = (tmp_path / "site" / "agents").glob("*.html")
    figure = page.read_text().partition("Return over reward density")[2].partition("</figure>")[0]
    assert "Return over reward density: 0: " in figure
    for part in parts:
        total = summarize(result.evaluations[part.name].episodes, unit_returns=True).total_reward
        assert f"<td>{total.mean:.2f} <small>[{total.low:.2f}, {total.high:.2f}]</small></td>" in figure


def test_the_paired_test_is_that_of_compare(results: Path) -> None:
    first, second = (check_entry(results / SUITE.name / name) for name in ("admissible-random", "oracle"))
    (pair,) = comparisons([first, second]).values()
    expected = compare(
        *({name: part.episodes for name, part in entry.result.evaluations.items()} for entry in (first, second))
    )
    assert (pair["better"], pair["worse"]) == (expected.better, expected.worse)
    assert pair["first"] == [round(bound, 6) for bound in astuple(expected.first)]
    assert pair["p_value"] == pytest.approx(expected.p_value, abs=1e-6)


def test_a_result_whose_texts_may_differ_is_marked_so(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in SUITE.parts:
        monkeypatch.setattr(gymnasium.spec(part.env), "nondeterministic", True)
    evaluate_suite(SUITE, "oracle", tmp_path / "results" / "oracle")
    summary = json.loads((tmp_path / "results" / "oracle" / "summary.json").read_text())
    assert summary["trust"] == ["replayed, texts may differ"]
    (entry,), _ = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert entry.trust == ("replayed, texts may differ",)
    assert '<span class="trust">replayed, texts may differ</span>' in (tmp_path / "site" / "index.html").read_text()
    assert "replayed, texts may differ</span></dt>" in (tmp_path / "site" / "about.html").read_text()


def test_pages_run_only_the_sites_own_script(site: Path) -> None:
    for path, page in pages(site):
        policies = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
        assert len(policies) == 1
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in str(policies[0])
        root = "../" * (len(path.relative_to(site).parts) - 1)
        assert [a.get("src") for tag, a in page.tags if tag == "script"] == [f"{root}site.js"], path
        for tag, attributes in page.tags:
            assert tag not in {"img", "style", "iframe", "object", "embed", "base", "b", "i"}, path
            assert not any(HANDLER.fullmatch(name) or name == "style" for name in attributes), path
            link = attributes.get("href") or ""
            assert "://" not in link or link.startswith(("https://arxiv.org/", "https://github.com/")), path


def test_what_an_attacker_wrote_is_there_as_text(site: Path) -> None:
    index = Tags((site / "index.html").read_text(encoding="utf-8"))
    assert '<b>bold</b>"><svg onload=' in index.text
    assert not any("\x1b" in page.text or "\u202e" in page.text for _, page in pages(site))
    (folder,) = (site / "data" / "episodes").glob("*bold*")
    episode = data(folder / SUITE.parts[0].name / "0.js")
    assert isinstance(episode, dict)
    first = episode["turns"][0]
    assert first["answer"] == first["reasoning"] == first["text"] == visible(ATTACK)


def test_data_cannot_end_the_script_that_holds_them(site: Path) -> None:
    for path in (site / "data").rglob("*.js"):
        text = path.read_text(encoding="ascii")
        assert "<" not in text
        assert text.count("\n") == 1
        data(path)


def test_an_episode_shows_what_the_world_knew(site: Path, results: Path) -> None:
    """The oracle's own episodes: the oracle's next action is what was played, and the plan gets shorter."""
    (folder,) = (site / "data" / "episodes").glob("*-oracle-*")
    episode = data(folder / SUITE.parts[0].name / "0.js")
    assert isinstance(episode, dict)
    record = load_result(results / SUITE.name / "oracle").episodes[0]
    assert [turn["answer"] for turn in episode["turns"]] == list(record.actions)
    assert [turn["oracle"] for turn in episode["turns"]] == list(record.actions)
    assert [turn["left"] for turn in episode["turns"]] == list(range(record.turns, 0, -1))
    for turn in episode["turns"]:
        assert turn["answer"] in [episode["actions"][index] for index in turn["admissible"]]
        assert turn["number"] == len(turn["admissible"])
    assert episode["turns"][-1]["reward"] == record.rewards[-1]


def test_links_lead_to_pages_that_are_there(site: Path) -> None:
    for path, page in pages(site):
        for tag, attributes in page.tags:
            link = attributes.get("href") or "#"  # The viewer's own script fills in the others.
            if tag != "a" or "://" in link or link.startswith("#"):
                continue
            address, _, query = link.partition("#")[0].partition("?e=")
            assert (path.parent / address).is_file(), (path, link)
            assert not query or (site / "data" / "episodes" / f"{query}.js").is_file(), (path, link)


def test_agents_of_one_name_with_other_details_are_told_apart(results: Path, tmp_path: Path) -> None:
    entry = check_entry(results / SUITE.name / "oracle")
    twin = replace(entry, slug="twin", result=replace(entry.result, details={"temperature": 0.5}))
    write_pages(tmp_path, [entry, twin], [], "Two")
    page = Tags((tmp_path / "index.html").read_text())
    assert "oracle (temperature 0.5)" in page.text
    assert page.text.count("oracle") == 2
    for each in (entry, twin):
        assert (tmp_path / "agents" / f"{each.agent_slug}.html").is_file()
    assert entry.agent_slug != twin.agent_slug
    assert re.fullmatch(r"oracle-[0-9a-f]{24}", entry.agent_slug)  # Of eight digits, anybody finds another agent's.


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (
            ({"temperature": 0.5, "model": "m"}, {"temperature": 1.0, "model": "m"}),
            ("temperature 0.5", "temperature 1.0"),
        ),
        (({"effort": "low", "seed": 1}, {"effort": "high", "seed": 2}), ("effort low, seed 1", "effort high, seed 2")),
        (
            (UNLIMITED, UNLIMITED | {"episode_turns": 20}, UNLIMITED | {"hints": True, "episode_tokens": 900}),
            ("", "episode_turns 20", "episode_tokens 900, hints"),
        ),
        (
            (UNLIMITED, UNLIMITED | {"episode_cost": 0.25, "price_input": 2.5}),
            ("", "episode_cost 0.25, price_input 2.5"),
        ),
        (({"temperature": 0.0}, {"temperature": None}), ("temperature 0.0", "")),
        (({"effort": "x" * 70}, {"effort": "y"}), (None, "effort y")),
        (({"effort": "<b>"}, {"effort": "b"}), (None, "effort b")),
        (({"effort": 1}, {"effort": "1"}), (None, None)),
        (({"hints": False}, {}), (None, None)),
    ],
)
def test_agents_of_one_name_are_told_apart_by_short_settings(
    results: Path, tmp_path: Path, values: tuple[dict[str, Any], ...], shown: tuple[str | None, ...]
) -> None:
    """By the settings that one has and another has not, and by the end of the address where these do not fit."""
    entry = check_entry(results / SUITE.name / "oracle")
    twins = [replace(entry, slug=f"twin-{n}", result=replace(entry.result, details=d)) for n, d in enumerate(values)]
    write_pages(tmp_path, twins, [], "Two")
    for twin, settings in zip(twins, shown, strict=True):
        told = twin.agent_slug[-8:] if settings is None else settings
        page = (tmp_path / "agents" / f"{twin.agent_slug}.html").read_text()
        assert f"<h1><bdi>oracle{f' ({told})' if told else ''}</bdi></h1>" in page


def test_episodes_that_broke_gain_no_place(results: Path, tmp_path: Path) -> None:
    entry = check_entry(results / SUITE.name / "admissible-random")
    episodes = entry.result.evaluations["four"].episodes  # Two of each task.
    won = [replace(each, success=number % 2 == 0, broken="") for number, each in enumerate(episodes)]
    cheat = [replace(each, broken="" if each.success else "x") for each in won]
    rows = []
    for each in (won, cheat):
        part = replace(entry.result.evaluations["four"], episodes=tuple(each))
        changed = replace(entry, result=replace(entry.result, evaluations={"four": part}))
        rows.append(Row("mine", changed, summarize(each)))
    assert [row.at_least for row in rows] == [0.5, 0.5]
    assert rows[1].summary.success.mean == 1.0


def test_a_suite_of_any_name_has_an_address_of_its_own(results: Path, tmp_path: Path) -> None:
    entry = check_entry(results / SUITE.name / "oracle")
    names = [f"{SUITE.name}@{digit * 64}:{digit * 32}" for digit in "12"]
    strange = [
        replace(entry, slug=f"s{n}", result=replace(entry.result, suite=replace(SUITE, name=name)))
        for n, name in enumerate(names)
    ]
    assert strange[0].suite_slug != strange[1].suite_slug
    assert all(re.fullmatch(r"[a-z0-9-]{1,70}", each.suite_slug) for each in strange)
    write_pages(tmp_path, strange, [], "Strange")
    assert {path.stem for path in (tmp_path / "data" / "comparisons").iterdir()} == {e.suite_slug for e in strange}


def test_the_same_result_is_shown_once(results: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(results / SUITE.name / "oracle", tmp_path / "results" / name)
    entries, left_out = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert len(entries) == 1
    assert "it is the same as" in left_out[0].reasons[0]


def test_long_texts_are_cut_and_say_so() -> None:
    assert bounded("x" * (LONGEST_TEXT + 5)).endswith("[5 more characters]")


def test_only_a_site_is_replaced(results: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidOptionError, match="something else than a leaderboard"):
        build(results, tmp_path)
    assert (tmp_path / "thesis.tex").exists()
    (tmp_path / "thesis.tex").rename(tmp_path / MARKER)
    (tmp_path / "old.html").write_text("old")
    build(results, tmp_path, episodes=0)
    assert not (tmp_path / "old.html").exists()
    assert (tmp_path / "index.html").exists()


def test_a_site_is_not_replaced_by_one_without_results(results: Path, tmp_path: Path) -> None:
    build(results, tmp_path / "site", episodes=0)
    before = (tmp_path / "site" / "index.html").read_text()
    bad = shutil.copytree(results / SUITE.name / "oracle", tmp_path / "bad" / "oracle")
    (bad / f"{SUITE.parts[0].name}.jsonl").write_text("nothing")
    with pytest.raises(InvalidOptionError, match="stays as it is"):
        build(tmp_path / "bad", tmp_path / "site", episodes=0)
    assert (tmp_path / "site" / "index.html").read_text() == before
    shown, left_out = build(tmp_path / "bad", tmp_path / "new", episodes=0)
    assert (shown, len(left_out)) == ([], 1)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="holds no result of a suite"):
        build(tmp_path, tmp_path / "site")
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        build(tmp_path / "missing", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_links_and_hidden_folders_are_not_followed(results: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(results)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "result.json").write_text("{}")
    assert find_results(tmp_path) == []


def test_checking_stops_when_time_is_over(results: Path) -> None:
    with pytest.raises(InvalidOptionError, match="seconds must be at least 1"):
        check_entry(results / SUITE.name / "oracle", seconds=0.1)


def test_a_result_that_takes_too_long_is_left_out(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> None:
        import time

        time.sleep(30)

    monkeypatch.setattr("textagent_gym.leaderboard.entries.verify_result", slow)
    with pytest.raises(InvalidOptionError, match="takes longer than 1 seconds"):
        check_entry(results / SUITE.name / "oracle", seconds=1)
    monkeypatch.setattr("textagent_gym.leaderboard.entries.verify_result", verify_result)
    assert check_entry(results / SUITE.name / "oracle", seconds=60).trust == ("replayed",)


def test_runs_of_the_very_same_agent_are_numbered_where_one_is_chosen(results: Path, tmp_path: Path) -> None:
    entry, other = (check_entry(results / SUITE.name / name) for name in ("oracle", "admissible-random"))
    write_pages(tmp_path, [entry, replace(entry, slug="again"), other], [], "Twice")
    choices = re.findall(r'value="([^"]+)" data-suite="[^"]+">([^<]+)<', (tmp_path / "compare.html").read_text())
    assert dict(choices) == {
        entry.slug: "oracle, run 1",
        "again": "oracle, run 2",
        other.slug: "admissible-random",
    }
    link = f'<a href="results/again.html">{SUITE.name}</a>'
    assert re.search(rf"{link} <small>[^<]+, run 2</small>", (tmp_path / "index.html").read_text())
    assert f"{SUITE.name}, run 2</h1>" in (tmp_path / "results" / "again.html").read_text()
    values = data(tmp_path / "data" / "results" / "again.js")
    assert isinstance(values, dict)
    assert values["agent"] == "oracle, run 2"


def test_whoever_only_claims_to_be_a_policy_is_not_merged_with_it(results: Path, tmp_path: Path) -> None:
    entry = check_entry(results / SUITE.name / "admissible-random")
    policy = replace(entry.result, agent="model:0123", details={"policy": "0" * 64})
    proven = replace(entry, slug="proven", result=policy, trust=("replayed", "recomputed"))
    claimed = replace(entry, slug="claimed", result=policy)
    write_pages(tmp_path, [claimed, proven], [], "Two")
    for each, name in ((proven, "model:0123"), (claimed, "model:0123 (not recomputed)")):
        page = (tmp_path / "agents" / f"{each.agent_slug}.html").read_text()
        assert f"<h1><bdi>{name}</bdi></h1>" in page
        assert [link for link in ("proven", "claimed") if f"results/{link}.html" in page] == [each.slug]


def test_a_flagged_result_says_so_wherever_its_trust_is_told(results: Path, tmp_path: Path) -> None:
    entry = replace(check_entry(results / SUITE.name / "admissible-random"), flags=(FLAG,))
    write_pages(tmp_path, [entry, check_entry(results / SUITE.name / "oracle")], [], "Flags")
    index = (tmp_path / "index.html").read_text()
    page = (tmp_path / "results" / f"{entry.slug}.html").read_text()
    for text in (index, page, (tmp_path / "agents" / f"{entry.agent_slug}.html").read_text()):
        pills = [attributes for tag, attributes in Tags(text).tags if attributes.get("class") == "trust flagged"]
        assert pills == [{"class": "trust flagged", "title": FLAG}]
    assert f"Flag: {FLAG}" in Tags(page).text
    trust = [attributes["data-trust"] for tag, attributes in Tags(index).tags if "data-trust" in attributes]
    assert sorted(map(str, trust)) == ["replayed", "replayed|flagged"]
    assert '<option value="flagged">flagged</option>' in index


def test_a_flag_is_only_a_note_where_tokens_were_computed_again(results: Path, tmp_path: Path) -> None:
    entry = replace(check_entry(results / SUITE.name / "admissible-random"), flags=(FLAG,))
    write_pages(tmp_path, [replace(entry, trust=("replayed", "recomputed"))], [], "Flags")
    assert "flagged" not in (tmp_path / "index.html").read_text()
    text = Tags((tmp_path / "results" / f"{entry.slug}.html").read_text()).text
    assert f"{FLAG} Its tokens were computed again" in text
    assert "Flag:" not in text


def test_the_success_if_broken_episodes_are_lost_stands_below_the_success(results: Path, tmp_path: Path) -> None:
    entry = check_entry(results / SUITE.name / "oracle")
    first, *rest = entry.result.evaluations["four"].episodes
    part = replace(entry.result.evaluations["four"], episodes=(replace(first, broken="gone"), *rest))
    changed = replace(entry, result=replace(entry.result, evaluations={"four": part}))
    write_pages(tmp_path, [changed], [], "Broken")
    row = (tmp_path / "index.html").read_text().partition("<tbody>")[2].partition("</tr>")[0]
    cells = [Tags(cell).text.strip() for cell in row.split("<td")[1:]]
    assert f"1 broken: {len(rest) / (len(rest) + 1):.1%} if these are lost" in cells[0]
    assert cells[-1].endswith(f">{len(rest)}")


def test_the_score_of_a_world_stands_below_the_return(results: Path, site: Path, tmp_path: Path) -> None:
    assert "score 0" not in (site / "index.html").read_text()
    entry = check_entry(results / SUITE.name / "admissible-random")
    evaluations = {
        name: replace(part, episodes=tuple(replace(episode, score=0.75) for episode in part.episodes))
        for name, part in entry.result.evaluations.items()
    }
    write_pages(tmp_path, [replace(entry, result=replace(entry.result, evaluations=evaluations))], [], "Scores")
    for page in ("index.html", f"agents/{entry.agent_slug}.html", f"results/{entry.slug}.html"):
        assert re.search(
            r"<small class=\"below\">score 0.75 \[0.\d\d, 0.\d\d\]</small></td>", (tmp_path / page).read_text()
        )
