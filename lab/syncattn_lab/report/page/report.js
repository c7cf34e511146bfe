"use strict";
// The sentences' browser. Whatever comes from the data is put into the page by textContent.
(async () => {
  const byId = (id) => document.getElementById(id);
  const byNumber = (a, b) => a - b;
  const PAGE = 100; // sentences that the list shows at first, and more at each push

  const packed = Uint8Array.from(atob(byId("data").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const lines = (await new Response(stream).text()).split("\n");
  const report = JSON.parse(lines[0]);
  const { systems, sentences } = report;
  /** What the list is sorted by, the largest number first: of one system, or the most of any. */
  const behind = (s, i) => Math.max(...s.chrf) - s.chrf[i];
  const tenths = (number) => number.toFixed(1);
  const counted = (name) => ({ of: (s, i) => s.counts[i][name] ?? 0, show: String, unit: "words" });
  const ORDERS = {
    loss: { of: behind, show: (number) => (number ? `−${tenths(number)}` : "0"),
      unit: "chrF behind" },
    worst: { of: (s, i) => -s.chrf[i], show: (number) => tenths(-number), unit: "chrF" },
    untranslated: counted("untranslated"),
    missing: counted("missing"),
    added: counted("added"),
    moved: counted("moved"),
    corpus: { of: () => 0, show: () => "", unit: "" },
    short: { of: (s) => -s.length, show: (number) => -number, unit: "words" },
    long: { of: (s) => s.length, show: String, unit: "words" },
  };
  const everyone = [...systems.keys()];
  const weigh = (order, who, n) => Math.max(...who.map((i) => ORDERS[order].of(sentences[n], i)));
  const ranked = (order, who, numbers) => {
    const weights = new Map(numbers.map((n) => [n, weigh(order, who, n)]));
    return numbers.sort((a, b) => weights.get(b) - weights.get(a) || a - b);
  };
  const usual = systems.length > 1 ? "loss" : "worst";
  // It opens on the sentence where a system loses most, or on the worst one of a single system.
  const first = ranked(usual, everyone, [...sentences.keys()]);
  const state = { number: first[0] ?? 0, shown: new Set(everyone), layers: {}, limit: PAGE };

  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // ast: Vega interprets its expressions, since the page's policy forbids to compile them.
  const embed = async (element, name, specification) => {
    await window.vegaEmbed(element, { description: name, ...specification }, {
      ast: true,
      renderer: "svg",
      downloadFileName: name || "figure",
      actions: { export: true, source: false, compiled: false, editor: false },
    });
    const menu = element.querySelector("summary");
    menu.setAttribute("aria-label", `Save: ${name}`);
    menu.parentElement.title = `Save: ${name}`;
    menu.tabIndex = -1; // the first one is a stop of the tab key, and arrows lead to the others
    const [stop] = menus();
    if (stop && !menus().some((one) => one.tabIndex === 0)) stop.tabIndex = 0;
  };
  const menus = () => [...document.querySelectorAll("main:not([hidden]) .vega-embed summary")];
  document.addEventListener("keydown", ({ key, target }) => {
    const all = menus(), at = all.indexOf(target);
    const next = all[at + { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key]];
    if (at < 0 || !next) return;
    target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  // ---- tabs

  const tabs = { summary: byId("tab-summary"), browser: byId("tab-browser") };
  let summaryDrawn = false;
  const open = (name) => {
    for (const [tab, button] of Object.entries(tabs)) {
      button.setAttribute("aria-selected", tab === name);
      byId(tab).hidden = tab !== name;
    }
    if (name === "summary" && !summaryDrawn) {
      summaryDrawn = true;
      for (const element of document.querySelectorAll(".overview"))
        embed(element, element.dataset.name, report.overview[element.dataset.chart]);
    }
  };
  tabs.summary.onclick = () => { location.hash = ""; };
  tabs.browser.onclick = () => { location.hash = `#${state.number + 1}`; };

  // ---- the list

  const searched = sentences.map((s) =>
    [s.source, s.reference, ...s.translations].join("\n").toLowerCase());
  const who = () => (byId("of")?.value ? [Number(byId("of").value)] : everyone);
  const FOUND = {
    "": () => true,
    untranslated: (s) => who().some((i) => s.counts[i].untranslated),
    missing: (s) => who().some((i) => s.counts[i].missing),
  };

  const fitting = (which) => FOUND[which] ?? ((s) => s.differ.includes(which));

  const chosen = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const from = Number(byId("shortest").value || 0);
    const to = Number(byId("longest").value || Infinity);
    const fits = fitting(byId("which").value);
    const found = [...sentences.keys()].filter((n) => {
      const s = sentences[n];
      return s.length >= from && s.length <= to && searched[n].includes(wanted) && fits(s);
    });
    return ranked(byId("order").value, who(), found);
  };

  const list = () => {
    const found = chosen();
    const missed = found.includes(state.number) ? "" : found.length
      ? "; the one shown is not among them" : "; choose other filters";
    byId("found").textContent =
      `${found.length} of ${sentences.length} sentence${sentences.length === 1 ? "" : "s"}${missed}`;
    const limit = Math.max(state.limit, found.indexOf(state.number) + 1);
    const order = byId("order").value;
    byId("unit").textContent = ORDERS[order].unit;
    byId("head").hidden = !found.length;
    byId("list").replaceChildren(...found.slice(0, limit).map((n) => {
      const button = make("button", undefined, { "data-number": n });
      button.append(
        make("span", n + 1, { class: "n" }),
        make("span", sentences[n].source || sentences[n].reference, { class: "t", dir: "auto" }),
        make("span", ORDERS[order].show(weigh(order, who(), n)), { class: "n" }));
      if (n === state.number) button.setAttribute("aria-current", "true");
      button.onclick = () => { location.hash = `#${n + 1}`; };
      const item = make("li");
      item.append(button);
      return item;
    }));
    byId("more").hidden = found.length <= limit;
  };
  for (const option of byId("which").options) {
    if (option.value) option.disabled = !sentences.some(fitting(option.value));
  }
  byId("filters").oninput = () => { state.limit = PAGE; list(); };
  byId("filters").onsubmit = (event) => event.preventDefault();
  byId("more").onclick = () => { state.limit += PAGE; list(); };

  // ---- one sentence

  /** A system's name, after its shape. */
  const named = (i) => `${report.shapes[i][1]} ${systems[i]}`;

  for (const index of systems.keys()) {
    const button = make("button", named(index), {
      "aria-pressed": "true", dir: "auto", style: `--colour: ${report.colours[index]}` });
    button.onclick = () => {
      const on = !state.shown.has(index);
      if (on) state.shown.add(index); else state.shown.delete(index);
      button.setAttribute("aria-pressed", on);
      show();
    };
    byId("switches").append(button);
  }

  /** The tag, the class and the description of each kind of mark. */
  const MARKS = {
    "+": ["ins", "added", "not in the reference"],
    "-": ["del", "missing", "in the reference, but not here"],
    "<": ["span", "moved left", "in the reference, farther to the left"],
    ">": ["span", "moved right", "in the reference, farther to the right"],
  };
  const mark = (kind, text, note) => {
    const [tag, name, title] = MARKS[kind];
    return make(tag, text, { class: name, title: note ? `${title}; source: ${note}` : title });
  };

  /** A translation with its marks, and what it does not translate. */
  const translation = (text, [pieces, untranslated]) => {
    const element = make("dd", undefined, { dir: "auto" });
    if (!text.trim()) element.append(make("span", "(empty)", { class: "none" }), " ");
    for (const [kind, piece, note] of pieces ?? [["", text]]) {
      const bare = piece.trimStart();
      if (bare !== piece) element.append(" ");
      element.append(kind ? mark(kind, bare, note) : bare);
    }
    if (untranslated) {
      const lost = make("div", "not translated: ", { class: "lost" });
      lost.append(make("b", untranslated));
      element.append(lost);
    }
    return element;
  };

  const arcData = (side, predicted, causal) => ({
    words: side.words.map((word, i) => ({
      word, causal,
      gold: side.heads ? side.heads[i] : null,
      predicted: predicted ? predicted[i] : null,
      label: side.labels ? side.labels[i] : "",
    })),
  });

  const treeData = (words, tree) => ({
    items: [
      ...words.map((word, i) => ({ word, parent: tree.parents[i] })),
      ...tree.nodes.map(([start, end, height, parent, label, right]) => ({
        start, end, height, parent, label: label === "X" ? "" : label,
        verdict: right === null ? "unknown" : right ? "right" : "wrong",
      })),
    ],
  });

  /** A word, and where it is in its sentence, in characters from 0, if that is known. */
  const placed = (side, n) =>
    side.spans ? `${side.words[n]} (${side.spans[n].join("–")})` : side.words[n];

  const linkData = (detail, links) => {
    const pairs = (some) => new Set(some.map(([s, t]) => `${s}-${t}`));
    const known = detail.sure !== null;
    const sure = pairs(detail.sure ?? []), gold = pairs([...detail.sure ?? [], ...detail.possible ?? []]);
    const [source, target] = [detail.source.words, detail.target.words];
    return {
      rows: target.map((word) => ({ word, across: source.length })),
      columns: source.map((word) => ({ word })),
      cells: links.map(([column, row]) => ({
        row, column,
        verdict: !known ? "unknown" : gold.has(`${column}-${row}`) ? "right" : "wrong",
        text: `${placed(detail.target, row)} – ${placed(detail.source, column)}`,
      })),
      gold: [...gold].map((pair) => {
        const [column, row] = pair.split("-").map(Number);
        return { row, column, sure: sure.has(pair) };
      }),
    };
  };

  const percent = (right, all) =>
    (all ? ` ${Math.round((100 * right) / all)} % (${right} of ${all})` : "");

  const figure = (kind, title, note, data) => {
    const element = make("figure"), picture = make("div"), caption = make("figcaption");
    caption.append(make("b", title, { dir: "auto" }), note);
    element.append(caption, picture);
    embed(picture, title || "parses", { ...report.charts[kind], datasets: data });
    return element;
  };

  const key = (...parts) => {
    const element = make("p", undefined, { class: "key" });
    for (const [text, colour] of parts)
      element.append(colour ? make("i", text, { style: `--colour: ${colour}` }) : text);
    return element;
  };
  const BLUE = "#1c5fb8", RED = "#c2410c", GREY = "#5f6870", SHARED = "#868e96";

  const section = (title, legend, figures, layers) => {
    if (!figures.length) return [];
    const heading = make("h2", title);
    if (layers) heading.append(layers);
    const row = make("div", undefined, { class: "systems" });
    row.append(...figures);
    return [heading, legend, row];
  };

  /** The parses of several systems under one row of words; only what differs has colours. */
  const compareData = (side, given, heads, causal) => {
    const arcs = side.words.flatMap((_, dependent) => {
      const found = given.map((i) => heads(i)[dependent]);
      const right = side.heads ? side.heads[dependent] : null;
      const line = (head) => right === null ? "solid" : causal && right > dependent + 1 ? "dotted"
        : head === right ? "solid" : "dashed";
      if (found.every((head) => head === found[0]))
        return [{ dependent, head: found[0], colour: SHARED, shape: "triangle-up",
          line: line(found[0]), shift: 0 }];
      return given.map((i, place) => ({
        dependent, head: found[place], colour: report.colours[i], shape: report.shapes[i][0],
        line: line(found[place]), shift: 3 * place,
      }));
    });
    return { items: [...arcData(side, null, causal).words, ...arcs] };
  };

  const compared = (gold, given, heads, share, causal, title) => {
    const legend = key(...(gold.heads ? [["Above, "], ["grey", GREY], [": gold. "]] : []),
      ["Below, grey: as all of them have it; in colour: where they differ. "],
      ...given.flatMap((i) => [[named(i), report.colours[i]], [`${share(i)}, `]]).slice(0, -1),
      [share(given.at(-1))],
      ...(gold.heads ? [[". Solid: right. Dashed: wrong."]] : [[". There is no gold parse."]]),
      ...(gold.heads && causal ? [[" Dotted: not counted, since the gold head is to the right, "
        + "where the decoder cannot look."]] : []));
    return section(title, legend, [figure("compare", "", "", compareData(gold, given, heads, causal))]);
  };

  const parses = (detail, side, title) => {
    const gold = detail[side];
    const given = [...state.shown].sort(byNumber).filter((i) => detail.systems[i][side]);
    const causal = side === "target";
    const heads = (i) => detail.systems[i][side];
    const share = (i) => {
      const asked = [...heads(i).keys()].filter(
        (w) => gold.heads && (!causal || gold.heads[w] <= w + 1));
      return percent(asked.filter((w) => heads(i)[w] === gold.heads[w]).length, asked.length);
    };
    if (given.length > 1) return compared(gold, given, heads, share, causal, title);
    const figures = given.map((i) =>
      figure("arcs", systems[i], gold.heads ? share(i) : " no gold parse", arcData(gold, heads(i), causal)));
    if (!figures.length && gold.heads && gold.words.length)
      figures.push(figure("arcs", "gold", "", arcData(gold, null, causal)));
    const legend = !figures.length || !gold.heads ? key(["The system’s; there is no gold parse."])
      : !given.length ? key(["Gold; no system shown has a parse."])
      : key(["Above, "], ["grey", GREY], [": gold. Below, the system: "], ["right", BLUE], [", "],
        ["wrong", RED], ...(causal ? [[", "], ["pale", "#5373a4"],
          [": the head is to the right, where the decoder cannot look"]] : []), ["."]);
    return section(title, legend, figures);
  };

  const choice = (name, layers) => {
    if (layers.length < 2) return undefined;
    const select = make("select", undefined, { "aria-label": "Layer" });
    for (const layer of layers) {
      const option = make("option", layer ? `layer ${layer}` : "alignment head", { value: layer });
      option.selected = layer === state.layers[name];
      select.append(option);
    }
    select.onchange = () => { state.layers[name] = select.value; show(); };
    return select;
  };

  const layered = (name, detail, field, draw) => {
    const layers = [...new Set(detail.systems.flatMap((s) => Object.keys(s[field])))].sort(byNumber);
    if (!layers.includes(state.layers[name])) state.layers[name] = layers[0];
    const layer = state.layers[name];
    const figures = [...state.shown].sort(byNumber)
      .filter((i) => detail.systems[i][field][layer])
      .map((i) => draw(i, detail.systems[i][field][layer]));
    return [figures, choice(name, layers)];
  };

  const alignments = (detail) => {
    const [figures, layers] = layered("links", detail, "links", (i, links) =>
      figure("links", systems[i], "", linkData(detail, links)));
    const reads = "Each system reads the reference here; its own translation may be another. ";
    const legend = detail.sure === null
      ? key([`${reads}Squares: the system’s; there is no gold alignment.`])
      : key([`${reads}Frames: gold, whole where sure, dashed where possible. Squares, the system: `],
        ["right", BLUE], [", "], ["wrong", RED], ["."]);
    return section("Alignment of the source with the reference", legend, figures, layers);
  };

  const trees = (detail, side, title) => {
    const { words, tree } = detail[side];
    const [figures, layers] = layered(`${side}_trees`, detail, `${side}_trees`, (i, nodes) =>
      figure("tree", systems[i], "", treeData(words, nodes)));
    if (figures.length && tree)
      figures.unshift(figure("tree", "gold", "", treeData(words, tree)));
    const legend = key(["Split where the distance is largest. "], ...(tree ? [["Blue", BLUE],
      [": a constituent of the gold tree, "], ["orange", RED], [": none."]] : [["There is no gold tree."]]));
    return section(title, legend, figures, layers);
  };

  const matrices = (detail, field, heading, legend) => [...state.shown].sort(byNumber).flatMap((i) =>
    section(`${heading} of ${systems[i]}`, key(...legend),
      (detail.systems[i][field] || []).map(({ title, rows, columns, values, gold, causal }) => {
        const [of, to] = [rows, columns].map((side) => detail[side]?.words ?? side);
        return figure("heat", title, "", {
          rows: of.map((word) => ({ word })),
          columns: to.map((word) => ({ word })),
          cells: values.flatMap((weights, row) => weights.flatMap((weight, column) =>
            causal && column > row ? [] : [{
              row, column, weight: weight / 100, text: `${of[row]} – ${to[column]}: ${weight} %` }])),
          gold: gold.map(([row, column]) => ({ row, column })),
        });
      })));

  /** A sentence's texts, with marks where a translation is not the reference. */
  const texts = (summary, detail) => {
    const list = make("dl", undefined, { class: "texts" });
    const entry = (term, definition, small) => {
      const name = make("dt", term, { dir: "auto" });
      if (small !== undefined) name.append(" ", make("small", small));
      list.append(name, definition);
    };
    if (summary.source) entry("source", make("dd", summary.source, { dir: "auto" }));
    entry("reference", make("dd", summary.reference, { dir: "auto" }));
    for (const i of [...state.shown].sort(byNumber))
      entry(named(i), translation(summary.translations[i], detail.marked[i]), `chrF ${summary.chrf[i]}`);
    return list;
  };
  const explainMarks = () => {
    const element = make("p", "Against the reference: ", { class: "key" });
    const parts = [["+", "added", ", "], ["-", "missing", ", "], [">", "moved", "."]];
    for (const [kind, text, after] of parts) element.append(mark(kind, text), after);
    return element;
  };
  const read = (n) => JSON.parse(lines[n + 1]);

  const examples = first.slice(0, systems.length > 1 ? 1 : 3)
    .filter((n) => systems.length === 1 || weigh("loss", everyone, n) > 0);
  if (examples.length) {
    byId("examples").hidden = false;
    byId("examples").append(explainMarks(), ...examples.flatMap((n) => [
      texts(sentences[n], read(n)),
      make("a", `Sentence ${n + 1} in full`, { href: `#${n + 1}` })]));
  }

  const show = () => {
    const summary = sentences[state.number];
    if (!summary) return;
    const detail = read(state.number);
    if (detail.long) {
      const why = `This sentence has ${detail.long} words, too many for a picture.`;
      byId("sentence").replaceChildren(key([why]), texts(summary, detail), explainMarks());
      return;
    }
    byId("sentence").replaceChildren(
      make("h2", `Sentence ${state.number + 1}`),
      texts(summary, detail),
      explainMarks(),
      ...parses(detail, "source", "Parse of the source"),
      ...parses(detail, "target", "Parse of the reference"),
      ...alignments(detail),
      ...trees(detail, "source", "Tree of the source"),
      ...trees(detail, "target", "Tree of the reference"),
      ...matrices(detail, "matrices", "Attention", [["The darker, the more. Rings: "], ["gold", RED], ["."]]),
      ...matrices(detail, "gates", "Distances and gates",
        [["The darker, the larger the distance, or the farther the gate is open."]]));
  };

  const route = () => {
    const number = Number(location.hash.slice(1));
    if (number >= 1 && number <= sentences.length) {
      state.number = number - 1;
      open("browser");
      list();
      document.querySelector("#list [aria-current]")?.scrollIntoView({ block: "nearest" });
      show();
    } else open("summary");
  };
  window.onhashchange = route;
  route();
  document.documentElement.dataset.ready = "yes"; // for who drives the page
})();
