"use strict";
// Everything that is shown of an episode goes through textContent: none of it is ever read as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const CONSENT = data.consent;
  const MARKS = { admitted: "✓", denied: "×", consent: "?", forbidden: "!" };
  const WORDS = { admitted: "admitted", denied: "denied", consent: "denied: only consent is missing", forbidden: "forbidden and carried out" };
  const state = (call) => (!call.denied ? "admitted" : call.forbidden ? "forbidden" : call.onlyConsent ? "consent" : "denied");
  const FILTERS = ["policy", "decision", "rule", "category", "executed", "episode"];
  const calls = [];
  for (const episode of data.episodes) {
    episode.calls = episode.steps.filter((step) => step.kind === "call");
    for (const call of episode.calls) {
      call.episode = episode;
      calls.push(call);
    }
  }

  const mark = (call, matches) => {
    const kind = state(call);
    const element = make("span", `mark ${kind}${matches ? "" : " other"}`, MARKS[kind]);
    element.title = `${call.tool}: ${WORDS[kind]}`;
    element.setAttribute("aria-label", element.title);
    element.setAttribute("role", "img");
    return element;
  };

  const tests = {
    policy: (call, want) => call.episode.policy === want,
    decision: (call, want) =>
      want === "denied" ? call.denied : want === "admitted" ? !call.denied : want === "consent" ? call.onlyConsent : call.forbidden,
    rule: (call, want) => call.rules.includes(want),
    category: (call, want) => call.categories.includes(want),
    executed: (call, want) => (want === "yes" ? call.executed : want === "changed" ? call.changed : !call.executed),
    episode: (call, want) =>
      call.episode.name.toLowerCase().includes(want.toLowerCase()) || call.tool.toLowerCase().includes(want.toLowerCase()),
  };
  const wanted = () => FILTERS.map((name) => [name, $(name).value.trim()]).filter(([, value]) => value !== "");
  const passes = (call, filters) => filters.every(([name, value]) => tests[name](call, value));

  const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const tile = (number, words, bad) => {
    const item = make("li", bad && number ? "bad" : "");
    item.append(make("b", "", String(number)), make("span", "", words));
    return item;
  };

  const drawTotals = () => {
    const denied = calls.filter((call) => call.denied);
    const forbidden = denied.filter((call) => call.forbidden);
    $("totals").append(
      tile(data.episodes.length, data.episodes.length === 1 ? "episode" : "episodes"),
      tile(calls.length, "calls"),
      tile(calls.length - denied.length, "admitted"),
      tile(denied.length, "denied"),
      tile(denied.filter((call) => call.onlyConsent).length, "of them: only consent missing"),
      tile(forbidden.length, `forbidden and carried out, in ${plural(new Set(forbidden.map((call) => call.episode)).size, "episode")}`, true),
    );
    $("about").textContent = data.about;
  };

  const tally = (list, names) => {
    const counts = new Map();
    for (const call of list.filter((call) => call.denied)) {
      for (const name of names(call)) {
        const entry = counts.get(name) || { denied: 0, done: 0 };
        entry.denied += 1;
        entry.done += call.forbidden && name !== CONSENT && !(data.consentRules || []).includes(name) ? 1 : 0;
        counts.set(name, entry);
      }
    }
    return counts;
  };

  const drawChart = (filters) => {
    // Its own filter aside, so that the other bars stay to be chosen.
    const counts = tally(calls.filter((call) => passes(call, filters.filter(([name]) => name !== "category"))), (call) => call.categories);
    const most = Math.max(1, ...[...counts.values()].map((entry) => entry.denied));
    const chosen = $("category").value;
    const bars = data.categories.map((name) => {
      const { denied, done } = counts.get(name) || { denied: 0, done: 0 };
      const bar = make("button", "bar");
      bar.type = "button";
      bar.dataset.category = name;
      bar.setAttribute("aria-pressed", String(chosen === name));
      const track = make("span", "track");
      for (const [kind, number] of [[name === CONSENT ? "unseen" : "stopped", denied - done], ["done", done]]) {
        if (!number) continue;
        const part = make("span", kind);
        part.style.width = `${(100 * number) / most}%`;
        track.append(part);
      }
      const count = make("span", "count");
      count.append(make("b", "", String(denied)));
      if (done) count.append(make("span", "also", ` · ${done} carried out`));
      bar.append(make("span", "name", name), track, count);
      bar.addEventListener("click", () => choose("category", chosen === name ? "" : name));
      return bar;
    });
    $("chart").replaceChildren(...bars);
  };

  const drawRules = (filters) => {
    const counts = tally(calls.filter((call) => passes(call, filters)), (call) => call.rules);
    const rows = [...counts].sort((a, b) => b[1].denied - a[1].denied || (a[0] < b[0] ? -1 : 1)).map(([id, { denied, done }]) => {
      const row = make("tr");
      const known = data.rules[id] || {};
      const name = make("td");
      const button = make("button", "", id);
      button.type = "button";
      button.addEventListener("click", () => choose("rule", id));
      name.append(button);
      row.append(name, make("td", "", known.category || ""), make("td", "n", String(denied)), make("td", "n", done ? String(done) : ""));
      row.append(make("td", "", known.sentence || ""));
      return row;
    });
    if (!rows.length) {
      const none = make("td", "quiet", "No call was denied.");
      none.colSpan = 5;
      const row = make("tr");
      row.append(none);
      rows.push(row);
    }
    $("rules").tBodies[0].replaceChildren(...rows);
  };

  const describe = (call) => {
    const item = make("li", "call");
    const head = make("div");
    head.append(make("code", "tool", call.tool || "(no tool)"));
    const kind = state(call);
    head.append(make("span", "tag", WORDS[kind]));
    if (call.executed) head.append(make("span", "tag", call.changed ? "carried out, changed data" : "carried out"));
    else head.append(make("span", "tag", "not carried out"));
    if (call.contradicts) head.append(make("span", "tag", "the result contradicts the database"));
    if (call.undecided) head.append(make("span", "tag", "Lean did not answer"));
    item.append(mark(call, true), head, make("pre", "", call.arguments));
    if (call.denied) {
      const reasons = make("div", "reasons");
      for (const id of call.rules) {
        const line = make("div");
        const known = data.rules[id] || {};
        line.append(make("span", "id", id), make("span", "quiet", known.category ? ` (${known.category})` : ""));
        if (known.sentence) line.append(make("span", "", `: ${known.sentence}`));
        reasons.append(line);
      }
      for (const error of call.errors) reasons.append(make("div", "quiet words", error));
      item.append(reasons);
    }
    if (call.result) {
      const more = make("details");
      more.append(make("summary", "quiet", "recorded result"), make("pre", "", call.result));
      item.append(more);
    }
    return item;
  };

  const WHO = { customer: "customer", agent: "agent", device: "customer's device" };
  const timeline = (episode) => {
    const list = make("ol");
    for (const step of episode.steps) {
      let item;
      if (step.kind === "call") {
        item = describe(step);
        step.item = item;
      } else {
        item = make("li", "text");
        item.append(make("span", "who", WHO[step.kind] || step.kind), make("span", "words", step.text));
      }
      list.append(item);
    }
    return list;
  };

  const build = (episode) => {
    const details = make("details");
    details.className = "episode";
    const head = make("summary");
    episode.strip = make("span", "strip");
    episode.say = make("span", "say");
    head.append(make("span", "name words", episode.name), episode.strip, episode.say);
    details.append(head);
    details.addEventListener("toggle", () => {
      if (details.open) fill(episode);
    });
    episode.details = details;
    return details;
  };
  const fill = (episode) => {
    if (!episode.list) {
      episode.list = timeline(episode);
      episode.details.append(episode.list);
    }
    dim(episode);
  };
  const dim = (episode) => {
    for (const call of episode.calls) if (call.item) call.item.classList.toggle("other", !call.matches);
  };

  const draw = () => {
    const filters = wanted();
    let number = 0;
    let episodes = 0;
    for (const episode of data.episodes) {
      let here = 0;
      for (const call of episode.calls) {
        call.matches = passes(call, filters);
        here += call.matches ? 1 : 0;
      }
      const show = filters.length === 0 || here > 0;
      episode.details.hidden = !show;
      number += here;
      episodes += show ? 1 : 0;
      episode.strip.replaceChildren(...episode.calls.map((call) => mark(call, call.matches)));
      episode.say.textContent = filters.length ? `${here} of ${plural(episode.calls.length, "call")}` : plural(episode.calls.length, "call");
      dim(episode);
    }
    const active = filters.map(([name, value]) => `${name}: ${value}`).join(", ");
    $("shown").textContent =
      `${number} of ${plural(calls.length, "call")} in ${episodes} of ${plural(data.episodes.length, "episode")}` + (active ? ` (${active})` : "");
    drawChart(filters);
    drawRules(filters);
    label();
  };
  const choose = (name, value) => {
    $(name).value = value;
    draw();
    $(name).focus({ preventScroll: true });
  };
  const visible = () => data.episodes.filter((episode) => !episode.details.hidden);
  const allOpen = () => visible().every((episode) => episode.details.open);
  const label = () => {
    $("toggle").textContent = visible().length && allOpen() ? "Close all" : "Open all";
  };

  const options = (name, values) => {
    const any = make("option", "", "any");
    any.value = "";
    $(name).append(any, ...values.map((value) => {
      const option = make("option", "", value);
      option.value = value;
      return option;
    }));
  };
  options("policy", data.policies);
  $("policy-label").hidden = data.policies.length < 2;
  options("rule", [...tally(calls, (call) => call.rules).keys()].sort());
  options("category", data.categories.filter((name) => calls.some((call) => call.categories.includes(name))));
  $("episodes").append(...data.episodes.map(build));
  for (const name of FILTERS) $(name).addEventListener("input", draw);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("reset", () => setTimeout(draw));
  $("toggle").addEventListener("click", () => {
    const open = !allOpen();
    for (const episode of visible()) {
      episode.details.open = open;
      if (open) fill(episode);
    }
    label();
  });
  drawTotals();
  draw();
})();
