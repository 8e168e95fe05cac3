"use strict";
// What a page of the leaderboard does: tables that sort and filter, two agents side by side, a viewer of episodes.
// Everything that comes from a result is text: it enters the page as textContent, never as markup.

const root = document.body.dataset.root;
const $ = (id) => document.getElementById(id);

// Data are scripts, each a call of `textagent.receive`: browsers fetch nothing else for a page that is a file.
const KEY = /^(results|comparisons|episodes)(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/;
const waiting = new Map();
const loaded = new Map();

window.textagent = {
  receive(key, text) {
    waiting.get(key)?.(JSON.parse(text));
  },
};

function load(key) {
  if (!KEY.test(key)) return Promise.reject(new Error("There is no such address."));
  if (!loaded.has(key)) {
    loaded.set(key, new Promise((resolve, reject) => {
      waiting.set(key, resolve);
      const script = document.createElement("script");
      script.src = `${root}data/${key}.js`;
      script.onerror = () => reject(new Error("It is not part of this site."));
      document.head.append(script);
    }));
  }
  return loaded.get(key);
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Tables.

function cellValue(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  return text !== "" && isFinite(text) ? Number(text) : text;
}

function order(one, other) {
  const numbers = (typeof one === "number") - (typeof other === "number");
  if (numbers) return -numbers;
  return typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
}

function sortTable(table, header, upwards) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [cellValue(row, header.cellIndex), row]);
  const numeric = rows.some(([value]) => typeof value === "number");
  // At first the largest number, or the first name, is on top.
  const now = header.getAttribute("aria-sort");
  const ascending = upwards ?? (now === null ? !numeric : now === "descending");
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  rows.sort(([one], [other]) => (ascending ? order(one, other) : order(other, one)));
  // What has no number stands last, whichever way is up.
  if (numeric) rows.sort(([one], [other]) => (typeof one !== "number") - (typeof other !== "number"));
  body.append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const button of table.querySelectorAll(".sort")) {
    button.addEventListener("click", () => sortTable(table, button.closest("th")));
  }
}

function startFilters() {
  const controls = [...document.querySelectorAll("[data-filter]")];
  const table = $("results");
  const headers = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const matches = (row, control) => {
    const value = row.dataset[control.dataset.filter];
    if (control.type === "search") return value.toLowerCase().includes(control.value.trim().toLowerCase());
    return control.value === "" || value.split("|").includes(control.value);
  };
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    const column = asked.get("sort") ?? "";
    const sorted = headers.find((header) => header.textContent === column.replace(/^-/, ""));
    if (sorted) sortTable(table, sorted, !column.startsWith("-"));
    // An address without a filter may name a place of the page, and a browser may remember what was chosen.
    if (sorted || controls.some((control) => asked.has(control.dataset.filter))) {
      for (const control of controls) {
        control.value = asked.get(control.dataset.filter) ?? "";
        if (control.selectedIndex === -1) control.value = ""; // There is no such choice.
      }
    }
    filter();
  };
  const choose = () => {
    const chosen = controls.filter((control) => control.value).map((control) => [control.dataset.filter, control.value]);
    const sorted = headers.find((header) => header.hasAttribute("aria-sort"));
    if (sorted) chosen.push(["sort", `${sorted.getAttribute("aria-sort") === "ascending" ? "" : "-"}${sorted.textContent}`]);
    history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
    filter();
  };
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !controls.every((control) => matches(row, control));
      shown += !row.hidden;
    }
    $("shown").textContent = `${shown} of ${rows.length} results`;
  };
  for (const control of controls) control.addEventListener("input", choose);
  for (const header of headers) header.querySelector(".sort").addEventListener("click", choose); // It is sorted by now.
  window.addEventListener("hashchange", read);
  read();
}

// Two agents.

const points = (value) => (100 * value).toFixed(1);
const share = ([mean, low, high]) => `${points(mean)}% [${points(low)}, ${points(high)}]`;
const spread = ([mean, low, high]) => `${mean.toFixed(1)} [${low === null ? "n/a" : `${low.toFixed(1)}, ${high.toFixed(1)}`}]`;
const signed = (value) => `${value > 0 ? "+" : ""}${points(value)}`;

function startComparison() {
  const [first, second] = [$("first"), $("second")];
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    first.value = asked.get("first") ?? "";
    second.value = asked.get("second") ?? "";
    keepToSuite();
    show();
  };
  const keepToSuite = () => {
    const suite = first.selectedOptions[0]?.dataset.suite;
    second.disabled = !suite; // Which results can be compared, the first one says.
    const results = first.selectedOptions[0]?.closest("optgroup")?.children.length ?? 0;
    $("untested").hidden = results <= Number($("untested").dataset.most);
    for (const group of second.querySelectorAll("optgroup")) group.hidden = group.disabled = Boolean(suite) && group.label !== suite;
  };
  const choose = () => {
    location.hash = new URLSearchParams({ first: first.value, second: second.value }).toString();
  };
  let shows = 0; // Only the latest choice is shown, whichever arrives last.
  const show = async () => {
    const turn = ++shows;
    $("comparison").hidden = true;
    if (!first.value || !second.value) return void ($("message").textContent = "Choose a result, and then another one of the same suite.");
    const suites = [first, second].map((choice) => choice.selectedOptions[0].dataset.suite);
    if (suites[0] !== suites[1]) return void ($("message").textContent = "These are results of different suites.");
    try {
      const [one, other] = await Promise.all([load(`results/${first.value}`), load(`results/${second.value}`)]);
      const pairs = await load(`comparisons/${one.comparisons}`);
      if (turn !== shows) return;
      $("message").textContent = `${one.agent} (first) and ${other.agent} (second) in ${suites[0]}`;
      showNumbers(pairs, one, other);
      showTasks(one, other);
      $("comparison").hidden = false;
    } catch (error) {
      if (turn === shows) $("message").textContent = error.message;
    }
  };
  for (const choice of [first, second]) choice.addEventListener("change", choose);
  $("differing").addEventListener("change", () => filterTasks());
  window.addEventListener("hashchange", read);
  read();
}

function showNumbers(pairs, one, other) {
  const there = pairs[`${one.slug} ${other.slug}`], back = pairs[`${other.slug} ${one.slug}`];
  const facts = [
    ["success of the first", share(one.success)], ["success of the second", share(other.success)],
  ];
  if (there || back) {
    const p = there ?? back;
    const [better, worse] = there ? [p.better, p.worse] : [p.worse, p.better];
    const difference = there ? p.difference : p.difference.map((value) => -value);
    const bounds = [difference[1], difference[2]].sort((a, b) => a - b);
    facts.push(
      ["second minus first, in points", `${signed(difference[0])} [${bounds.map(signed).join(", ")}]`],
      ["tasks that the second solves more often", String(better)],
      ["tasks that it solves less often", String(worse)],
      ["p (exact)", p.p_value < 0.0001 ? "< 0.0001" : p.p_value.toFixed(4)],
    );
    if (p.left_out) facts.push(["tasks left out (all episodes broke)", String(p.left_out)]);
  } else {
    facts.push(["paired test", one === other ? "the same result" : "not computed for this pair: textagent-gym compare does"]);
  }
  facts.push(
    ["turns of the first", spread(one.turns)], ["turns of the second", spread(other.turns)],
    ["invalid actions of the first", share(one.invalid)], ["invalid actions of the second", share(other.invalid)],
  );
  $("numbers").replaceChildren(
    ...facts.map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value }))),
  );
}

function showTasks(one, other) {
  const rows = [];
  for (const [part, episodes] of Object.entries(one.parts)) {
    episodes.forEach((mine, number) => {
      const theirs = other.parts[part]?.[number];
      if (!theirs) return;
      const row = element("tr", {},
        element("th", { scope: "row", textContent: mine.task }), element("td", { textContent: part }),
        outcome(one.slug, part, number, mine), outcome(other.slug, part, number, theirs));
      row.dataset.differs = String(mine.success !== theirs.success);
      rows.push(row);
    });
  }
  $("tasks").tBodies[0].replaceChildren(...rows);
  filterTasks();
}

function outcome(slug, part, number, episode) {
  const text = `${episode.ending} after ${episode.turns} turn${episode.turns === 1 ? "" : "s"}`;
  const label = element("span", { className: `ending${episode.success ? " won" : ""}`, textContent: text });
  if (!episode.shown) return element("td", {}, label);
  return element("td", {}, element("a", { href: `${root}episode.html?e=${slug}/${part}/${number}` }, label));
}

function filterTasks() {
  const only = $("differing").checked;
  for (const row of $("tasks").tBodies[0].rows) row.hidden = only && row.dataset.differs !== "true";
}

// The viewer.

async function startViewer() {
  const address = new URLSearchParams(location.search).get("e") ?? "";
  const [slug, part, number] = address.split("/");
  try {
    const [episode, result] = await Promise.all([load(`episodes/${address}`), load(`results/${slug}`)]);
    showEpisode(episode, result, slug, part, Number(number));
  } catch (error) {
    $("error").textContent = `This episode cannot be shown. ${error.message}`;
    $("error").hidden = false;
  }
}

function showEpisode(episode, result, slug, part, number) {
  const total = episode.turns.length;
  const moments = total + 1; // The last one is what the world said at the end.
  const ended = `${episode.ending}${episode.cut ? `; the last ${episode.cut} turns are not shown` : ""}`;
  $("heading").textContent = `${result.agent}: ${episode.task}`;
  document.title = `${episode.task} – ${result.agent}`;
  const measured = Object.entries(episode.complexity).filter(([, value]) => value !== null);
  const facts = [`${result.suite}, ${part}${episode.type ? `, ${episode.type}` : ""}`, ended, `return ${episode.return}`,
    ...measured.map(([name, value]) => `${name.replaceAll("_", " ")} ${Number(value.toFixed?.(1) ?? value)}`)];
  if (episode.tokens !== null) facts.push(`${episode.tokens} tokens`);
  $("about").replaceChildren(element("a", { href: `${root}results/${slug}.html`, textContent: "All episodes" }), ` · ${facts.join(" · ")}`);
  $("instructions").textContent = episode.instructions || "(none)";
  $("slider").max = String(moments);
  const links = episode.turns.map((turn, index) => turnLink(turn, index + 1));
  links.push(turnLink({ answer: "(end)", reward: 0, valid: true }, moments));
  $("turns").replaceChildren(...links.map((link) => element("li", {}, link)));

  const current = () => {
    const asked = Number(/^#turn=(\d{1,6})$/.exec(location.hash)?.[1] ?? 1);
    return Math.min(Math.max(asked, 1), moments);
  };
  const go = (turn) => location.replace(`#turn=${Math.min(Math.max(turn, 1), moments)}`);
  const draw = () => {
    const turn = current();
    links.forEach((link, index) => {
      if (index + 1 === turn) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    });
    const [list, item] = [$("turns"), links[turn - 1].parentElement];
    if (item.offsetTop < list.scrollTop || item.offsetTop + item.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = item.offsetTop - list.clientHeight / 2;
    }
    $("slider").value = String(turn);
    $("slider").setAttribute("aria-valuetext", turn > total ? "end" : `turn ${turn} of ${total}`);
    $("position").textContent = turn > total ? `end, after ${total}` : `turn ${turn} of ${total}`;
    $("back").disabled = $("start").disabled = turn === 1;
    $("next").disabled = $("end").disabled = turn === moments;
    $("turn").replaceChildren(...(turn > total ? lastMoment(episode) : moment(episode, turn)));
  };
  const steps = { start: () => 1, back: () => current() - 1, next: () => current() + 1, end: () => moments };
  for (const [id, step] of Object.entries(steps)) $(id).addEventListener("click", () => go(step()));
  $("slider").addEventListener("input", () => go(Number($("slider").value)));

  const neighbour = (id, step) => {
    const position = number + step;
    if (!result.parts[part]?.[position]?.shown) return;
    $(id).href = `?e=${slug}/${part}/${position}`;
    $(id).hidden = false;
  };
  neighbour("earlier", -1);
  neighbour("later", 1);
  const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "start", End: "end", n: "later", p: "earlier" };
  document.addEventListener("keydown", (event) => {
    const id = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!id || event.ctrlKey || event.metaKey || event.altKey || event.target === $("slider")) return;
    event.preventDefault();
    $(id).click();
  });
  window.addEventListener("hashchange", draw);
  $("viewer").hidden = false;
  draw();
}

function turnLink(turn, number) {
  const link = element("a", { href: `#turn=${number}`, className: turn.valid ? "" : "invalid" },
    element("span", { className: "number", textContent: String(number) }),
    element("span", { textContent: (turn.action ?? turn.answer) || "(nothing)", dir: "auto" }));
  if (turn.reward) link.append(element("span", { className: `reward ${turn.reward > 0 ? "plus" : "minus"}`, textContent: reward(turn) }));
  return link;
}

const reward = (turn) => (turn.reward > 0 ? `+${turn.reward}` : String(turn.reward));

function titled(title, ...content) {
  return [element("h2", { textContent: title }), ...content];
}

const text = (words, kind = "") => element("div", { className: `text ${kind}`, textContent: words || "(nothing)", dir: "auto" });

function moment(episode, number) {
  const turn = episode.turns[number - 1];
  const next = episode.turns[number]?.observation ?? episode.last;
  const played = turn.action ?? turn.answer;
  const parts = [...titled("What the agent read", text(turn.observation))];
  for (const [name, title] of [
    ["reasoning", "What it says it was thinking"],
    ["text", "What it wrote beside its answer"],
    ["call", "The function that it called, as it wrote it"],
    ["ended", "How its answer ended, which is not whole"],
  ]) {
    if (turn[name]) parts.push(...titled(`${title} (its own word: a replay does not check it)`, text(turn[name], "remark")));
  }
  parts.push(...titled("What it answered", text(turn.answer, "answer")));
  if (turn.action !== null && turn.action !== turn.answer) parts.push(...titled("What was played", text(turn.action, "answer")));
  const how = turn.valid ? "" : ", and the world did not understand it or it was not possible";
  parts.push(...titled(`What followed: reward ${reward(turn)}${how}`, text(next)));
  if (turn.left !== null) {
    const plan = `${turn.left} action${turn.left === 1 ? "" : "s"} to the goal`;
    parts.push(...titled(`What the oracle would have done (${plan})`, text(turn.oracle, "oracle-action")));
  }
  if (turn.admissible !== null) {
    const choices = turn.admissible.map((index) => {
      const action = episode.actions[index];
      const kinds = [action === played ? "chosen" : "", action === turn.oracle ? "oracle" : ""].filter(Boolean);
      return element("li", { className: kinds.join(" "), textContent: action, title: kinds.join(", ") });
    });
    const more = turn.number - choices.length;
    if (more > 0) choices.push(element("li", { textContent: `and ${more} more` }));
    parts.push(...titled(`Admissible actions: ${turn.number}`, element("ul", { className: "choices" }, ...choices)));
  }
  return parts;
}

function lastMoment(episode) {
  return [...titled("The world's last words", text(episode.last)), ...titled("End", text(`${episode.ending}; return ${episode.return}`))];
}

const starts = { index: startFilters, compare: startComparison, episode: startViewer };
starts[document.body.dataset.page]?.();
