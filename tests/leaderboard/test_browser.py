"""The site in a real browser: clicks, keys, sorting, filters, what a screen reader is told, and attacks.

Pages are opened as files, so they have neither a server nor a network.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.leaderboard_site import LONGEST_WAIT
from tests.evaluation.results import SUITE
from tests.leaderboard.results import ATTACK
from tests.leaderboard.test_learning import run_folder
from textagent_gym.evaluation import evaluate_suite
from textagent_gym.leaderboard import build, check_entry
from textagent_gym.leaderboard.site import MOST_COMPARED, write_pages
from textagent_gym.terminal import visible

playwright = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
playwright.expect.set_options(timeout=LONGEST_WAIT)

CHROMIUM = os.environ.get("TEXTAGENT_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: apt-get install chromium"),
    pytest.mark.slow,
]
PART = SUITE.parts[0].name


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS, timeout=LONGEST_WAIT)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that fails the test for every error on its console, and every request for something else than a file."""
    context = browser.new_context()
    context.set_default_timeout(LONGEST_WAIT)
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    yield opened
    context.close()
    assert not wrong


def address(site: Path, name: str) -> str:
    return f"{site.as_uri()}/{name}"


def slug(site: Path, agent: str) -> str:
    return next(path.stem for path in (site / "results").glob("*.html") if agent in path.stem)


def episode(site: Path, agent: str, number: int = 0, turn: str = "") -> str:
    return address(site, f"episode.html?e={slug(site, agent)}/{PART}/{number}{turn}")


def agents(page: Any) -> list[str]:
    return [text for text in page.locator("#results tbody tr:visible th").all_inner_texts() if text]


def test_a_click_on_a_column_sorts_by_its_numbers(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    for name, column in (("success", 1), ("turns", 5), ("turns / optimum", 6), ("episodes", 8)):
        for direction in ("descending", "ascending"):
            page.get_by_role("button", name=name, exact=True).click()
            assert page.locator("th[aria-sort]").get_attribute("aria-sort") == direction
            cells = page.locator(f"#results tbody tr > :nth-child({column + 1})").all()
            values = [cell.get_attribute("data-value") for cell in cells]
            numbers = [float(value) for value in values if value]
            assert numbers == sorted(numbers, reverse=direction == "descending"), name
            assert values == [value for value in values if value] + [value for value in values if not value]


def test_a_click_on_a_column_sorts_by_its_words_from_the_first_letter(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    names = sorted(agents(page))
    for expected in (names, names[::-1]):
        page.get_by_role("button", name="agent", exact=True).click()
        assert agents(page) == expected


def test_filters_are_in_the_address(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    page.get_by_label("agent").fill("racl")
    playwright.expect(page).to_have_url(re.compile("#agent=racl$"))
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    assert agents(page) == ["oracle"]
    page.evaluate("location.hash = 'agent=e'")
    playwright.expect(page.get_by_role("status")).to_have_text("3 of 3 results")
    page.evaluate("location.hash = 'agent=nobody&who=knows'")
    playwright.expect(page.get_by_role("status")).to_have_text("0 of 3 results")


def test_the_order_is_in_the_address(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    page.get_by_label("agent").fill("r")
    for _ in range(2):
        page.get_by_role("button", name="turns / optimum", exact=True).click()
    order, link = agents(page), page.url
    page.get_by_role("button", name="turns / optimum", exact=True).click()
    assert agents(page) != order
    page.goto("about:blank")
    page.goto(link)
    assert agents(page) == order
    assert page.locator("th[aria-sort]").inner_text() == "turns / optimum"
    page.evaluate("location.hash = 'sort=-agent'")
    playwright.expect(page.locator("th[aria-sort=descending]")).to_have_text("agent")
    assert agents(page) == sorted(agents(page), reverse=True)
    page.evaluate("location.hash = 'sort=nothing'")
    playwright.expect(page.get_by_role("status")).to_have_text("3 of 3 results")


def test_a_place_of_the_page_is_no_filter(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    page.get_by_label("agent").fill("racl")
    page.evaluate("location.hash = 'main'")
    page.wait_for_timeout(200)
    assert agents(page) == ["oracle"]
    page.evaluate("location.hash = 'suite=nothing'")
    playwright.expect(page.get_by_role("status")).to_have_text("3 of 3 results")
    assert page.get_by_label("suite").input_value() == ""


def test_filters_hide_rows_and_say_how_many_are_left(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    assert len(agents(page)) == 3
    page.get_by_label("agent").fill("RACL")
    assert agents(page) == ["oracle"]
    assert page.get_by_role("status").inner_text() == "1 of 3 results"
    page.get_by_label("agent").fill("nobody")
    assert agents(page) == []
    page.get_by_label("agent").fill("")
    page.get_by_label("suite").select_option(SUITE.name)
    assert len(agents(page)) == 3


def test_the_viewer_steps_by_clicks_and_keys_and_its_address_names_the_turn(page: Any, site: Path) -> None:
    """A browser tells the page of a changed address in its own time: everything here waits for what is expected."""
    page.goto(episode(site, "admissible-random"))
    position = playwright.expect(page.locator("#position"))
    where = playwright.expect(page)
    total = page.locator("#turns li").count() - 1
    position.to_have_text(f"turn 1 of {total}")
    assert page.get_by_role("button", name="Previous turn").is_disabled()
    page.get_by_role("button", name="Next turn").click()
    page.keyboard.press("ArrowRight")
    position.to_have_text(f"turn 3 of {total}")
    where.to_have_url(re.compile("#turn=3$"))
    page.keyboard.press("ArrowLeft")
    where.to_have_url(re.compile("#turn=2$"))
    page.keyboard.press("End")
    position.to_have_text(f"end, after {total}")
    page.keyboard.press("Home")
    position.to_have_text(f"turn 1 of {total}")
    page.locator("#turns a").nth(4).click()
    where.to_have_url(re.compile("#turn=5$"))
    position.to_have_text(f"turn 5 of {total}")
    page.get_by_label("Turn", exact=True).focus()
    page.keyboard.press("ArrowRight")
    position.to_have_text(f"turn 6 of {total}")


@pytest.mark.parametrize("width", [360, 1280])
def test_the_list_of_turns_shows_the_turn_that_is_open(page: Any, site: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 200})  # Too low for all turns, however wide.
    page.goto(episode(site, "admissible-random"))
    inside = """() => {
        const [list, link] = [document.getElementById("turns"), document.querySelector("#turns [aria-current]")]
            .map(each => each.getBoundingClientRect());
        return link.top >= list.top && link.bottom <= list.bottom + 1;
    }"""
    for key in ("End", "Home", *["ArrowRight"] * (page.locator("#turns li").count() - 1)):
        page.keyboard.press(key)
        page.wait_for_function(inside)


@pytest.mark.parametrize(
    ("turn", "shown"), [("3", r"turn 3 of \d+"), ("999", r"end, after \d+"), ("<script>", r"turn 1 of \d+")]
)
def test_a_deep_link_opens_its_turn_and_a_wrong_one_the_nearest(page: Any, site: Path, turn: str, shown: str) -> None:
    page.goto(episode(site, "admissible-random", 0, f"#turn={turn}"))
    playwright.expect(page.locator("#position")).to_have_text(re.compile(f"^{shown}$"))


def test_the_viewer_shows_what_was_read_answered_and_possible(page: Any, site: Path) -> None:
    page.goto(episode(site, "oracle"))
    shown = page.locator("#turn").inner_text()
    for heading in ("What the agent read", "What it answered", "What the oracle would have done", "Admissible actions"):
        assert heading in shown
    both = page.locator(".choices .chosen.oracle")
    assert both.count() == 1
    assert both.inner_text() == page.locator(".answer").inner_text()
    page.keyboard.press("n")
    page.wait_for_url(f"**/{PART}/1")
    playwright.expect(page.locator("#later")).to_be_visible()


@pytest.mark.parametrize("wrong", ["", "nothing", "../../../etc/passwd", f"x/{PART}/0", "a/../b/0"])
def test_an_episode_that_is_not_there_is_said_to_be_missing(browser: Any, site: Path, wrong: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address(site, f"episode.html?e={wrong}"))
    assert "cannot be shown" in page.get_by_role("alert").inner_text()
    assert all(url.startswith(site.as_uri()) and ".." not in url.partition("?")[0] for url in asked)
    context.close()


def test_two_agents_stand_side_by_side(page: Any, site: Path) -> None:
    page.goto(address(site, "compare.html"))
    assert page.get_by_label("second").is_disabled()
    page.get_by_label("first").select_option(slug(site, "admissible-random"))
    page.get_by_label("second").select_option(slug(site, "oracle"))
    page.locator("#tasks").wait_for()
    names, values = (page.locator(f"#numbers {kind}").all_inner_texts() for kind in ("dt", "dd"))
    numbers = dict(zip(names, values, strict=True))
    assert numbers["success of the second"].startswith("100.0% [")
    first, second = (float(numbers[f"success of the {name}"].partition("%")[0]) for name in ("first", "second"))
    for fact in ("turns of the first", "invalid actions of the second"):
        assert re.fullmatch(r"[\d.]+%? \[[\d.]+, [\d.]+\]", numbers[fact]), fact
    forth = numbers["second minus first, in points"]
    assert forth.startswith(f"+{second - first:.1f} [")
    rows = page.locator("#tasks tbody tr")
    assert rows.count() == SUITE.episodes
    page.get_by_label("only tasks on which they differ").check()
    differing = page.locator("#tasks tbody tr:visible").count()
    assert 0 < differing < SUITE.episodes
    page.get_by_label("first").select_option(slug(site, "oracle"))
    page.get_by_label("second").select_option(slug(site, "admissible-random"))
    page.locator("#message", has_text="oracle (first)").wait_for()
    back = page.locator("#numbers dd").nth(2).inner_text()
    assert back.startswith(f"-{second - first:.1f} [-")
    page.get_by_label("second").select_option(slug(site, "oracle"))
    page.locator("#numbers", has_text="the same result").wait_for()
    page.get_by_label("only tasks on which they differ").uncheck()
    page.locator("#tasks tbody tr:visible a").first.click()
    page.locator("#turn").wait_for()


def test_only_a_suite_of_which_not_every_pair_is_tested_says_so(page: Any, results: Path, tmp_path: Path) -> None:
    entry = check_entry(results / SUITE.name / "oracle")
    many = [replace(entry, slug=f"s{number}") for number in range(MOST_COMPARED + 1)]
    other = replace(entry.result, suite=replace(SUITE, name="lights-other-v1"))
    few = [replace(entry, slug=f"o{number}", result=other) for number in range(MOST_COMPARED)]
    write_pages(tmp_path, [*many, *few], [], "Many")
    page.goto(address(tmp_path, "compare.html"))
    note = page.get_by_text(f"among the {MOST_COMPARED} best results of this suite")
    playwright.expect(note).to_be_hidden()
    for chosen, visible_there in (("s0", True), ("o0", False), ("s1", True), ("", False)):
        page.get_by_label("first").select_option(chosen)
        playwright.expect(note).to_be_visible(visible=visible_there)


@pytest.mark.parametrize("width", [360, 390])
def test_the_numbers_of_two_agents_stand_in_two_columns_on_a_phone(page: Any, site: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    first, second = slug(site, "admissible-random"), slug(site, "oracle")
    page.goto(address(site, f"compare.html#first={first}&second={second}"))
    page.locator("#tasks").wait_for()
    one, other, third = (page.locator("#numbers > div").nth(number).bounding_box() for number in range(3))
    assert one["y"] == other["y"]
    assert other["x"] >= one["x"] + one["width"]
    assert third["y"] > one["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_what_speaks_against_a_result_is_seen_without_scrolling_to_the_side(
    browser: Any, results: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """The success if broken episodes are lost; in a wide window, a flag too, in a colour of its own."""
    entry, oracle = (check_entry(results / SUITE.name / name) for name in ("admissible-random", "oracle"))
    broken = {
        name: replace(part, episodes=(replace(part.episodes[0], broken="gone"), *part.episodes[1:]))
        for name, part in entry.result.evaluations.items()
    }
    doubtful = replace(entry, result=replace(entry.result, agent="mine", evaluations=broken), flags=("A copy.",))
    write_pages(tmp_path, [doubtful, oracle], [], "Doubts")
    context = browser.new_context(viewport={"width": width, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address(tmp_path, "index.html"))
    page.get_by_label("trust").select_option("flagged")
    assert agents(page) == ["mine"]
    remark = page.get_by_text("if these are lost").bounding_box()
    assert remark["x"] + remark["width"] <= width
    flag = page.locator("#results .flagged")
    if width == 1280:
        box = flag.bounding_box()
        assert box["x"] + box["width"] <= width
    colours = page.evaluate("[...document.querySelectorAll('#results .trust')].map(e => getComputedStyle(e).color)")
    assert len(set(colours)) == 2
    context.close()


def test_an_attackers_words_are_words(page: Any, site: Path) -> None:
    """The test of `page` fails, too, for anything that is refused by the policy: nothing even tries."""
    for name in ("index.html", "about.html", f"results/{slug(site, 'bold')}.html"):
        page.goto(address(site, name))
        assert page.title() not in {"taken", "1"}
        assert page.locator("main img, main b, body script").count() == 0
    page.locator("#episodes a").first.click()
    page.locator("#turn .answer").wait_for()
    assert page.locator("#turn .answer").first.text_content() == visible(ATTACK)
    assert page.locator("#turn .remark").all_text_contents() == [visible(ATTACK)] * 4
    assert page.locator("#turn h2", has_text="a replay does not check it").count() == 4
    assert "taken" not in page.title()
    assert page.evaluate("({}).polluted") is None
    assert page.evaluate("Object.keys(window).includes('onerror') && window.onerror") in (False, None)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_fit_the_screen(browser: Any, site: Path, scheme: str, width: int) -> None:
    """Only tables scroll to the side, within themselves."""
    context = browser.new_context(viewport={"width": width, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    random = slug(site, "admissible-random")
    names = ["index.html", "about.html", f"compare.html#first={random}&second={random}", f"results/{random}.html"]
    names += [f"agents/{path.name}" for path in (site / "agents").iterdir()]
    names += [f"episode.html?e={random}/{PART}/0", f"episode.html?e={slug(site, 'bold')}/{PART}/0"]
    for name in names:
        page.goto("about:blank")
        page.goto(address(site, name))
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 28)"
    assert dark == (scheme == "dark")
    context.close()


def test_text_has_the_contrast_that_wcag_asks_for(browser: Any, site: Path) -> None:
    """4.5 to 1 for text (WCAG 2.2, 1.4.3), for the colours of both schemes."""
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(address(site, "index.html"))
        colours = page.evaluate(
            """() => { const style = getComputedStyle(document.documentElement);
            return Object.fromEntries(["ground", "raised", "text", "quiet", "link", "good", "bad"].map(
              name => [name, style.getPropertyValue("--" + name).trim()])); }"""
        )
        for ground in ("ground", "raised"):
            for name in ("text", "quiet", "link", "good", "bad"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (scheme, name, ground)
        context.close()


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours: WCAG 2.2, "relative luminance"."""

    def luminance(colour: str) -> float:
        channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_a_learning_curve_is_drawn_and_told_in_numbers(page: Any, tmp_path: Path) -> None:
    evaluate_suite(SUITE, "oracle", tmp_path / "r", run=run_folder(tmp_path / "run", [0.0, 0.25, 1.0]))
    (entry,), _ = build(tmp_path / "r", tmp_path / "site", episodes=0)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(address(tmp_path / "site", f"agents/{entry.agent_slug}.html"))
    section = page.get_by_role("region", name="Learning", exact=True)
    assert "nobody can check it" in section.inner_text()
    chart = section.get_by_role("img")
    assert chart.get_attribute("aria-label").endswith(": 0.0% at 1, 100.0% at 3")
    line = section.locator("polyline")
    points = line.evaluate(
        """line => [...line.points].map(point => point.matrixTransform(line.getScreenCTM())).map(({x, y}) => [x, y])"""
    )
    frame = chart.bounding_box()
    across, down = zip(*points, strict=True)
    assert frame["x"] < across[0] < across[1] < across[2] < frame["x"] + frame["width"] <= 360
    assert across[2] - across[0] > 150
    height = down[0] - down[2]
    assert height > 80
    assert down[0] - down[1] == pytest.approx(height / 4, abs=1)
    colours = line.evaluate("line => [getComputedStyle(line).stroke, getComputedStyle(line).fill]")
    assert colours[0] != "none"
    assert colours[1] == "none"
    table = section.get_by_role("table")
    assert not table.is_visible()
    section.get_by_text("Numbers").focus()
    page.keyboard.press("Enter")
    assert table.locator("tbody tr").all_inner_texts() == ["1\t0.0%", "2\t25.0%", "3\t100.0%"]


def test_a_screen_reader_is_told_what_is_there(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    tree = page.locator("body").aria_snapshot()
    for line in (
        "- banner:",
        '- navigation "Pages":',
        "- main:",
        '- region "Table of results"',
        "- columnheader",
        "- status",
    ):
        assert line in tree, line
    for role, name in (("combobox", "suite"), ("combobox", "world"), ("combobox", "trust"), ("searchbox", "agent")):
        assert f'{role} "{name}"' in tree
    page.get_by_role("button", name="success", exact=True).click()
    assert page.get_by_role("columnheader", name="success", exact=True).first.get_attribute("aria-sort") == "descending"
    page.goto(episode(site, "oracle"))
    page.locator("#turn").wait_for(state="visible")
    tree = page.locator("body").aria_snapshot()
    for line in ('button "Next turn"', 'slider "Turn"', 'list "Turns"', 'region "This turn"', "heading"):
        assert line in tree, line
    for name in ("index.html", f"results/{slug(site, 'oracle')}.html", "compare.html", "about.html", "episode.html"):
        page.goto(address(site, name))
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("button, a[href], input, select")].filter(
              e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)"""
        )
        assert not unnamed, name
        assert page.locator("h1").count() == 1


def test_everything_is_reached_by_keyboard_alone(page: Any, site: Path) -> None:
    page.goto(address(site, "index.html"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    seen = set()
    for _ in range(40):
        seen.add(page.evaluate("document.activeElement.closest('[data-filter], .sort, .scroll, a')?.className ?? ''"))
        page.keyboard.press("Tab")
    assert {"sort", "scroll"} <= seen
    page.get_by_role("button", name="episodes").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").inner_text().startswith("episodes")
