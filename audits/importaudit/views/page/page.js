"use strict";
// Shows the data of the page; measures and computes nothing that is not in it, but sums.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const root = document.documentElement;

const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#d4a72c",
  "#9c755f", "#e377c2", "#86bcb6", "#8c6bb1", "#b5662f", "#5f8d3b", "#a05195"];
const DEPTH = 8;              // levels below the zoomed module that are drawn
const SLIVER = 0.004;   // of the whole: what is narrower is drawn together
const ROWS = 100;       // of a table that are drawn

const seconds = (ns) => (ns / 1e9).toFixed(3);
const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
const amount = (metric, value) => metric === "bytes" ? `${megabytes(value)} MB` : `${seconds(value)} s`;
// To plotly, text is markup.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// --- the top ------------------------------------------------------------------------------

function top_of_page() {
  document.title = `importaudit: ${data.target}`;
  $("target").textContent = data.target;
  $("facts").textContent = [`${data.python}  Python ${data.version}`, ...data.facts].join(" · ");
  $("made").textContent = `importaudit ${data.tool}, ${data.created}`;
  if (data.failure) {
    $("failed").hidden = false;
    $("message").textContent = [data.failure.message, data.failure.hint].filter(Boolean).join(" – ");
    $("stderr").textContent = data.failure.stderr;
  }
  for (const step of data.next || []) {
    $("next").hidden = false;
    const item = element("li");
    item.append(element("span", `${(step.saving / 1e9).toFixed(2)} s`, "saving"));
    const what = element("span", step.what);
    what.append(element("span", ` (${step.known})`, "dim"));
    item.append(what, element("code", [step.how, step.where].filter(Boolean).join(" ")));
    $("steps").append(item);
  }
  for (const note of data.notes) {
    $("notes").hidden = false;
    $("remarks").append(element("li", note));
  }
}

// One colour a phase, in both pictures.
const phase_colours = new Map([...new Set([...data.phases.map(([, words]) => words),
  ...data.states.flatMap((state) => state.rows.map(([words]) => words))])]
  .map((words, number) => [words, PALETTE[number % PALETTE.length]]));
const words_of = new Map(data.phases);

// --- states -------------------------------------------------------------------------------

function layout(height) {
  return {
    height, margin: {l: 10, r: 10, t: 4, b: 36}, paper_bgcolor: css("--back"),
    plot_bgcolor: css("--back"), font: {color: css("--text"), family: "system-ui, sans-serif", size: 12},
    xaxis: {gridcolor: css("--line"), zerolinecolor: css("--line"), ticksuffix: " s"},
    hoverlabel: {align: "left"},
  };
}

const QUIET = {displayModeBar: false, responsive: true};

function draw_states() {
  const states = data.states;
  const words = [...new Set(states.flatMap((state) => state.rows.map(([word]) => word)))];
  const names = states.map((state) => plain(state.name));
  const traces = words.map((word) => {
    const walls = states.map((state) => (state.rows.find(([name]) => name === word) || [word, 0])[1]);
    return {
      type: "bar", orientation: "h", name: word, y: names, x: walls.map((wall) => wall / 1e9),
      marker: {color: phase_colours.get(word)},
      hovertemplate: `%{y}<br>${word}: %{x:.3f} s<extra></extra>`,
    };
  }).filter((trace) => trace.x.some((x) => x));
  Plotly.react("bars", traces, {
    ...layout(130 + 34 * states.length), barmode: "stack",
    legend: {orientation: "h", x: 0, y: -30 / (34 * states.length), yanchor: "top", traceorder: "normal"},
    margin: {l: 10, r: 230, t: 4, b: 100}, yaxis: {automargin: true, autorange: "reversed"},
    annotations: states.map((state) => ({
      x: state.rows.reduce((sum, [, wall]) => sum + wall, 0) / 1e9, y: plain(state.name), xanchor: "left",
      showarrow: false, xshift: 6,
      text: `${seconds(state.wall)} s` + (state.runs > 1
        ? ` (${seconds(state.least)} to ${seconds(state.most)}, ${state.runs} runs)` : ""),
    })),
  }, QUIET);
  const bounds = [...new Set(states.filter((state) => state.bound).map((state) => state.bound))];
  $("bounds").textContent = bounds.map((bound) => `Cold times are a lower bound: ${bound}.`).join(" ");
}

// --- the icicle ---------------------------------------------------------------------------

const nodes = data.nodes;
const sums = {};         // by tree and metric: what is below each module, itself included
const zoom = {at: 0};
let below = {};          // by tree: the children of each module

function children(tree) {
  if (!below[tree]) {
    below[tree] = nodes.name.map(() => []);
    nodes[tree].forEach((parent, number) => { if (parent >= 0) below[tree][parent].push(number); });
  }
  return below[tree];
}

function totals(tree, metric) {
  const key = `${tree} ${metric}`;
  if (!sums[key]) {
    const total = [...nodes[metric]];
    const order = [0];
    for (let at = 0; at < order.length; at++) order.push(...children(tree)[order[at]]);
    for (const number of order.reverse()) {
      const parent = nodes[tree][number];
      if (parent >= 0) total[parent] += total[number];
    }
    sums[key] = total;
  }
  return sums[key];
}

const colours = (() => {
  const own = new Map();
  (nodes ? nodes.distribution : []).forEach((name, number) =>
    own.set(name, (own.get(name) || 0) + nodes.wall[number]));
  const ranked = [...own.keys()].filter(Boolean).sort((a, b) => own.get(b) - own.get(a));
  return {
    distribution: new Map(ranked.slice(0, 10).map((name, rank) => [name, PALETTE[rank]])),
    phase: phase_colours,
  };
})();

function largest_phase(number) {
  const most = Object.entries(nodes.phases[number]).reduce((a, b) => b[1] > a[1] ? b : a, ["", 0]);
  return words_of.get(most[0]) || "";
}

function colour_of(number, how) {
  const key = how === "phase" ? largest_phase(number) : nodes.distribution[number];
  return colours[how].get(key) || css("--other");
}

function matches(word) {
  const found = new Set();
  if (!word) return found;
  nodes.name.forEach((name, number) => {
    if (number && (name.toLowerCase().includes(word) ||
        nodes.distribution[number].toLowerCase().includes(word))) found.add(number);
  });
  return found;
}

// What is drawn of the tree below the zoomed module: no slivers, which nobody could read.
function drawn(tree, total) {
  const shown = {ids: [], parents: [], values: [], numbers: [], levels: 1};
  const add = (id, parent, value, number) => {
    shown.ids.push(id); shown.parents.push(parent); shown.values.push(value); shown.numbers.push(number);
  };
  const least = total[zoom.at] * SLIVER;
  const waiting = [[zoom.at, "", 0]];
  while (waiting.length) {
    const [number, parent, depth] = waiting.pop();
    add(String(number), parent, total[number], number);
    shown.levels = Math.max(shown.levels, depth + 1);
    const under = depth < DEPTH ? children(tree)[number] : [];
    const wide = under.filter((child) => total[child] >= least && total[child] > 0);
    const rest = under.filter((child) => !(total[child] >= least && total[child] > 0));
    const left = rest.reduce((sum, child) => sum + total[child], 0);
    if (left >= least && left > 0) add(`${number} rest`, String(number), left, -rest.length);
    for (const child of wide) waiting.push([child, String(number), depth + 1]);
  }
  return shown;
}

function told(number, total, metric) {
  const phases = Object.entries(nodes.phases[number]).sort((a, b) => b[1] - a[1]).slice(0, 4)
    .map(([phase, wall]) => `${words_of.get(phase)} ${seconds(wall)} s`);
  return [`<b>${plain(nodes.name[number])}</b>`, plain(nodes.distribution[number]),
    `${amount(metric, total[number])} with what is below it`,
    `self ${seconds(nodes.wall[number])} s wall, ${seconds(nodes.cpu[number])} s CPU, ${megabytes(nodes.bytes[number])} MB`,
    ...phases].filter(Boolean).join("<br>");
}

// Short: what a module shares with the one to its left is left out.
function label(number, tree) {
  if (number < 0) return `… ${-number} more`;
  const name = nodes.name[number];
  const above = nodes.name[Math.max(0, nodes[tree][number])];
  const package_name = `${name.split(".", 1)[0]}.`;
  return number !== zoom.at && name.startsWith(package_name) && above.startsWith(package_name)
    ? name.slice(package_name.length - 1) : name;
}

// The end of a name tells more than its beginning.
function fitted(name, figure, pixels) {
  const room = Math.max(6, Math.floor(pixels / 6.8) - figure.length - 3);  // of an 11 px font
  return `${name.length > room ? "…" + name.slice(name.length - room + 1) : name}  ${figure}`;
}

function draw_icicle() {
  const [metric, tree, how] = ["metric", "tree", "colour"].map((id) => $(id).value);
  const word = $("search").value.trim().toLowerCase();
  const total = totals(tree, metric);
  const found = matches(word);
  const shown = drawn(tree, total);
  const dim = (number) => word !== "" && !found.has(number);
  Plotly.react("icicle", [{
    type: "icicle", ids: shown.ids, parents: shown.parents, values: shown.values,
    labels: shown.numbers.map((number) => plain(label(number, tree))), branchvalues: "total", sort: true,
    tiling: {orientation: "h", pad: 1}, pathbar: {visible: false}, textposition: "middle left",
    text: shown.numbers.map((number, at) => plain(fitted(label(number, tree),
      amount(metric, shown.values[at]), $("icicle").clientWidth / shown.levels))),
    textinfo: "text", leaf: {opacity: 1},
    hovertext: shown.numbers.map((number) => number < 0
      ? `${-number} modules that are too small to draw; a click on the one to their left shows more`
      : told(number, total, metric)),
    hoverinfo: "text",
    insidetextfont: {color: shown.numbers.map((number) => number < 0 || dim(number) ? css("--text") : "#ffffff")},
    marker: {
      colors: shown.numbers.map((number) => number < 0 || dim(number)
        ? css("--faint") : colour_of(number, how)),
      line: {width: 0},
    },
  }], {...layout(720), margin: {l: 0, r: 0, t: 0, b: 0}, uniformtext: {mode: "hide", minsize: 11}}, QUIET);
  draw_path(tree);
  draw_legend(how);
  const matched = [...found].reduce((sum, number) => sum + nodes[metric][number], 0);
  $("found").textContent = word
    ? `${found.size.toLocaleString("en")} modules match, ${amount(metric, matched)} of their own` : "";
}

function draw_path(tree) {
  const steps = [];
  for (let at = zoom.at; at >= 0; at = nodes[tree][at]) steps.unshift(at);
  $("path").replaceChildren(...steps.flatMap((number, position) => {
    const button = element("button", nodes.name[number]);
    button.type = "button";
    button.addEventListener("click", () => zoom_to(number));
    return position ? [document.createTextNode("›"), button] : [button];
  }));
}

function draw_legend(how) {
  const names = how === "phase" ? data.phases.map(([, words]) => words) : [...colours.distribution.keys()];
  const items = names.map((name) => [colours[how].get(name), name]);
  $("legend").replaceChildren(...[...items, [css("--other"), "other"]].map(([colour, words]) => {
    const item = element("span", words);
    const square = element("i");
    square.style.background = colour;
    item.prepend(square);
    return item;
  }));
}

function zoom_to(number) {
  zoom.at = number;
  draw_icicle();
}

function widest_match() {
  const total = totals($("tree").value, $("metric").value);
  const found = [...matches($("search").value.trim().toLowerCase())];
  if (found.length) zoom_to(found.reduce((a, b) => total[b] > total[a] ? b : a));
}

function start_icicle() {
  $("chain").hidden = false;
  draw_icicle();
  $("icicle").on("plotly_icicleclick", (event) => {
    const id = event.points[0].id;
    // A click on the module that fills the picture leads back to the one above it.
    const above = nodes[$("tree").value][zoom.at];
    if (/^\d+$/.test(id)) zoom_to(Number(id) === zoom.at && above >= 0 ? above : Number(id));
    return false;
  });
  for (const id of ["metric", "tree", "colour"]) $(id).addEventListener("change", draw_icicle);
  $("search").addEventListener("input", draw_icicle);
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") widest_match(); });
}

// --- tables -------------------------------------------------------------------------------

function table(id, title, columns, rows) {
  const state = {column: columns.findIndex((column) => column.first), down: true, word: ""};
  const part = element("div", undefined, "table");
  const head = element("div", undefined, "head");
  const search = element("input");
  search.type = "search";
  search.placeholder = "filter";
  search.setAttribute("aria-label", `filter ${title}`);
  const count = element("span", "", "dim");
  head.append(element("h2", title), search, count);
  const grid = element("table");
  grid.id = id;
  const titles = element("tr");
  const body = element("tbody");
  columns.forEach((column, number) => {
    const cell = element("th", column.title, column.show ? "" : "text");
    cell.addEventListener("click", () => {
      state.down = state.column === number ? !state.down : Boolean(column.show);
      state.column = number;
      draw();
    });
    titles.append(cell);
  });
  const top = element("thead");
  top.append(titles);
  grid.append(top, body);
  const scroll = element("div", undefined, "scroll");
  scroll.append(grid);
  part.append(head, scroll);
  search.addEventListener("input", () => { state.word = search.value.trim().toLowerCase(); draw(); });

  function draw() {
    const kept = rows.filter((row) => !state.word ||
      row.some((value) => typeof value === "string" && value.toLowerCase().includes(state.word)));
    const by = state.column;
    kept.sort((a, b) => (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) * (state.down ? -1 : 1));
    [...titles.children].forEach((cell, number) => {
      if (number === by) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    body.replaceChildren(...kept.slice(0, ROWS).map((row) => {
      const line = element("tr");
      columns.forEach((column, number) => line.append(column.show
        ? element("td", column.show(row[number])) : element("td", row[number], "text")));
      return line;
    }));
    const more = kept.length > ROWS ? `, the first ${ROWS} are shown` : "";
    count.textContent = `${kept.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")}${more}`;
  }
  draw();
  $("tables").append(part);
}

function tables() {
  const whole = (count) => count.toLocaleString("en");
  const costs = (what) => [{title: what}, {title: "self s", show: seconds}, {title: "self CPU s", show: seconds},
    {title: "exclusive s", show: seconds, first: true}, {title: "cumulative s", show: seconds},
    {title: "modules below", show: whole}, {title: "first imported at"}];
  if (data.distributions) table("distributions", "Distributions", costs("distribution"), data.distributions);
  if (data.modules) table("modules", "Modules", costs("module"), data.modules);
  if (data.lines.length) {
    table("lines", "Hottest lines", [{title: "module"}, {title: "line"}, {title: "source"},
      {title: "sampled s", show: seconds, first: true}], data.lines);
  }
  if (data.unbaked) {
    table("bytecode", `Bytecode of the chain: ${data.bytecode}`, [{title: "distribution"}, {title: "kind"},
      {title: "sources", show: whole}, {title: "unusable", show: whole, first: true},
      {title: "adds MB", show: megabytes}], data.unbaked);
  }
}

// --- light and dark -----------------------------------------------------------------------

function themes() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => { root.dataset.theme = dark ? "dark" : "light"; };
  const charts = () => { draw_states(); if (nodes) draw_icicle(); };
  set(system.matches);
  system.addEventListener("change", () => { set(system.matches); charts(); });
  $("theme").addEventListener("click", () => { set(root.dataset.theme !== "dark"); charts(); });
}

themes();
top_of_page();
draw_states();
if (nodes) start_icicle();
tables();
root.dataset.ready = String(performance.now());
