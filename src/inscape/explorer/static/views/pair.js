// The view of two networks: the same window of both, and the refinement of their regions.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { INK, PAPER, classColour, css, themeOf } from "../colours.js";
import { pairCsvOf, pairPythonOf, svgOf } from "../copy.js";
import { Examples, Thumb, useThumbs } from "../examples.js";
import { PointFacts, number } from "../facts.js";
import { Pane } from "../pane.js";
import { TakeAlong } from "../take_along.js";
import { pixelOf } from "../window.js";
import { Controls, planeAsked, statusText, useAnswer, usePlane, windowOf } from "./slice.js";

/** The view, as main.js lists it. */
export const view = {
  name: "pair", title: "Two networks", isThere: (session) => Boolean(session.other), isOffline: false,
  View: Pair, fields: { apart: { kind: "word", start: "classes" } },
};

const FIRST = { network: "first", step: -1 };
const OTHER = { network: "other", step: -1 };
const BOTH = { network: "first", step: -1 };
const PANES = [["first", FIRST], ["other", OTHER], ["both", BOTH]];

function Pair({ api, session, state, update, theme }) {
  const plane = usePlane(api, session, state);
  const panes = useRef({});
  const [news, setNews] = useState({});
  const [pointer, setPointer] = useState(null);
  const [points, setPoints] = useState({ first: null, other: null });
  const now = useRef({});
  now.current = { state, update };
  const isExact = session.exact;
  const shown = PANES.filter(([name]) => name !== "both" || isExact);

  const listeners = (name) => ({
    onWindow: (window) => {
      for (const pane of Object.values(panes.current)) pane.setWindow(window);
      now.current.update(window);
    },
    onNews: (next) => setNews((before) => ({ ...before, [name]: next.state === "moving"
      ? { ...before[name], isLeast: next.isLeast } : { isLeast: before[name]?.isLeast, ...next } })),
    onHover: () => {},
    onPointer: (place) => {
      for (const [other, pane] of Object.entries(panes.current)) {
        pane.cursor = other === name ? null : place;
        pane.draw();
      }
      setPointer(underPointer(panes.current.both, place));
    },
    onClick: (place) => now.current.update({ at: place }, true),
    onHome: () => now.current.update({ u: null, v: null, h: null }, true),
    at: () => now.current.state.at,
  });

  useEffect(() => {
    if (!plane || plane.reason) {
      for (const pane of Object.values(panes.current)) {
        if (plane) pane.clear();
        else pane.fade();
      }
      if (!plane) setNews({});
      return;
    }
    for (const pane of Object.values(panes.current)) {
      pane.setPlane(plane, plane.asked);
      pane.setWindow(windowOf(state, plane));
    }
  }, [plane]);
  useEffect(() => {
    if (!plane || plane.reason) return;
    for (const pane of Object.values(panes.current)) pane.setWindow(windowOf(state, plane));
  }, [state.u, state.v, state.h]);
  useEffect(() => {
    for (const [name, pane] of Object.entries(panes.current)) {
      const colour = name === "both" ? state.apart : state.colour;
      pane.set({ colour, edges: state.edges, points: state.points && name !== "both" });
    }
  }, [state.colour, state.apart, state.edges, state.points]);
  useEffect(() => Object.values(panes.current).forEach((pane) => pane.draw()), [state.at, theme]);
  useAnswer(api, plane, state.at, (point) => setPoints((known) => ({ ...known, first: held(point, known.first) })), "point", (at) => ({ at }), FIRST);
  useAnswer(api.as("o"), plane, state.at, (point) => setPoints((known) => ({ ...known, other: held(point, known.other) })), "point", (at) => ({ at }), OTHER);

  const close = () => update({ at: null }, true);
  const more = isExact && html`<label>Both <select id="apart" value=${state.apart}
    onChange=${(event) => update({ apart: event.target.value }, true)}>
    <option value="classes">where they disagree</option><option value="distance">largest distance of outputs</option>
  </select></label>`;
  return html`<div class="view">
    <section class="stage" aria-label="Two networks">
      <${Controls} ...${{ session, state, update, more }} />
      ${plane?.reason && html`<p class="refused">${plane.reason}</p>`}
      <div class="panes">${shown.map(([name, seen]) => html`<${NetworkPane} key=${name}
        ...${{ api, session, name, seen, news: news[name], listeners, panes, plane, state }} />`)}</div>
      <${Legend} ...${{ session, panes, state, news }} />
    </section>
    <aside class="side">
      <${Pointed} ...${{ pointer, session }} />
      <${PointFacts} point=${points.first} api=${api} session=${session} onClose=${close} title="The clicked point in the first" id="point" />
      <${PointFacts} point=${points.other} api=${api.as("p")} session=${session} onClose=${close} title="The clicked point in the second" id="other-point" />
      <${Disagreements} ...${{ api, session, state, update }} />
      ${session.planes.includes("examples") && html`<${Examples} ...${{ api, session, state, update }} />`}
      <${Copies} ...${{ panes, session, plane, state }} />
    </aside>
  </div>`;
}

/** Return a point, or what a function of the last one makes of it. */
function held(point, before) {
  return typeof point === "function" ? point(before) : point;
}

/** Return what both networks say at a place, from the cells of their refinement. */
function underPointer(both, place) {
  if (!both?.cut) return { place };
  const cell = both.renderer.pick(...pixelOf(both.window, both.size, ...place));
  if (cell < 0) return { place };
  const { classes, otherClasses, differences } = both.cut.arrays;
  return { place, cell, first: classes[cell], other: otherClasses[cell], difference: differences[cell] };
}

/** One network in the window, with what is known of it. */
function NetworkPane({ api, session, name, seen, news, listeners, panes, plane, state }) {
  const root = useRef(null);
  const isPair = name === "both";
  useEffect(() => {
    const pane = new Pane(root.current, {
      api: api.as(name[0]), session, listeners: listeners(name), isPair,
    });
    pane.seen = seen;
    panes.current[name] = pane;
    pane.settings = {
      colour: isPair ? state.apart : state.colour, edges: state.edges, points: state.points && !isPair,
    };
    if (plane && !plane.reason) {
      pane.setPlane(plane, plane.asked);
      pane.setWindow(windowOf(state, plane));
    }
    const onTheme = () => pane.recolour();
    addEventListener("themechange", onTheme);
    return () => {
      removeEventListener("themechange", onTheme);
      pane.close();
      delete panes.current[name];
    };
  }, []);
  const title = isPair ? "Both together" : name === "first" ? session.title : session.other;
  const text = isPair ? pairText(news) : statusText(news ?? { state: "computing" }, session);
  useEffect(() => panes.current[name].overlay.setAttribute("aria-label",
    `${title}. ${text} Arrows move all windows, plus and minus zoom, 0 goes back.`), [title, text]);
  return html`<figure class=${isPair ? "wide" : ""}>
    <figcaption><strong>${title}</strong><br /><span id=${`status-${name}`} role="status" aria-live="polite">${text}</span></figcaption>
    <div class="pane" id=${`pane-${name}`} ref=${root}></div>
  </figure>`;
}

/** Return what the refinement of both networks says, in a sentence. */
export function pairText(news) {
  if (!news || news.state === "computing") return "Cutting the plane along the kinks of both …";
  if (news.state !== "exact") return news.text ?? "";
  const { facts } = news;
  const where = facts.complete ? "the window" : `the middle ${(100 * facts.covered).toFixed(1)}% of the window`;
  const share = `${(100 * facts.fraction).toPrecision(3)}%`;
  return `${facts.cells} cells of both. They disagree on ${facts.fraction ? share : "nothing"} of ${where}`
    + `${facts.fraction ? ` (area ${number(facts.area)}, ${facts.exact ? "exact" : "exact there"})` : ""}; `
    + `outputs are at most ${number(facts.largest)} apart.`;
}

function Legend({ session, panes, state, news }) {
  const seen = new Set();
  for (const pane of Object.values(panes.current)) {
    if (!pane.isPair) pane.classesInView().forEach((k) => seen.add(k));
  }
  const items = state.colour === "class" || state.colour === "confidence"
    ? [...seen].sort((a, b) => a - b).slice(0, 24).map((k) => [classColour(k), session.classes[k]]) : [];
  if (state.apart === "classes" && news.both?.state === "exact") items.push([[213, 94, 0], "they disagree"]);
  return html`<ul class="legend" aria-label="Colours">${items.map(([colour, text]) => html`
    <li><i style=${{ background: css(colour) }}></i>${text}</li>`)}
    ${news.both?.state === "exact" && html`<li>solid line: boundary of the first; dashed: of the second</li>`}</ul>`;
}

function Pointed({ pointer, session }) {
  return html`<section class="card" aria-labelledby="pointed"><h2 id="pointed">Under the pointer</h2>
    ${pointer?.cell === undefined ? html`<p class="quiet">Point into any of the windows.</p>` : html`
    <dl class="facts" id="pointed-facts">
      <dt>first</dt><dd>${session.classes[pointer.first]}</dd>
      <dt>second</dt><dd>${session.classes[pointer.other]}</dd>
      <dt>outputs apart</dt><dd>at most ${number(pointer.difference)} in this cell</dd>
      <dt>place</dt><dd>${number(pointer.place[0], 6)}, ${number(pointer.place[1], 6)}</dd>
    </dl>`}
  </section>`;
}

/** The examples on which both disagree; one that is chosen becomes A of the plane. */
function Disagreements({ api, session, state, update }) {
  const [known, setKnown] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    api.post("pair/examples", {}, stop.signal).then(
      ({ facts }) => setKnown(facts),
      (error) => error.name === "AbortError" || setKnown({ reason: error.message }),
    );
    return () => stop.abort();
  }, []);
  const rows = (known?.named ?? []).slice(0, 24).map((each) => each.row);
  const thumbs = useThumbs(api.as("d"), rows);
  const choose = (row) => {
    const [, ...rest] = planeAsked(session, { ...state, kind: "examples" }).rows;
    const others = rest.map((each) => (each === row ? session.rows.find((r) => r !== row && !rest.includes(r)) ?? each : each));
    update({ kind: "examples", rows: [row, ...others], u: null, v: null, h: null, line: null, at: null }, true);
  };
  return html`<section class="card" aria-labelledby="differ"><h2 id="differ">Examples they disagree on</h2>
    ${!known ? html`<p class="quiet">Both networks answer …</p>` : known.reason ? html`<p class="refused">${known.reason}</p>` : html`
    <p class="quiet" id="differ-count">${known.differ} of ${known.rows} examples${known.low === null || known.low === undefined ? ""
      : ` (${(100 * known.low).toFixed(1)} to ${(100 * known.high).toFixed(1)}% of their kind, at 95%)`}${known.right
      ? `; right are ${(100 * known.right[0]).toFixed(1)}% and ${(100 * known.right[1]).toFixed(1)}%` : ""}.</p>
    ${known.named.length > 0 && session.planes.includes("examples") && html`<p class="quiet">Choose one as A of the plane; the farthest apart come first.</p>`}
    <ul class="differ">${known.named.slice(0, 24).map((each, k) => html`<li><button onClick=${() => choose(each.row)}
        disabled=${!session.planes.includes("examples")} title=${`example ${each.row}`}>
      ${thumbs[k]?.shape && html`<${Thumb} ...${thumbs[k]} title=${`example ${each.row}`} />`}
      <span>no. ${each.row}${each.label && `, ${each.label}`}:<br />${each.first} or ${each.other}</span></button></li>`)}</ul>`}
  </section>`;
}

function Copies({ panes, session, plane, state }) {
  const code = useMemo(() => {
    if (!plane || plane.reason) return "";
    const window = windowOf(state, plane);
    return pairPythonOf(session, plane.facts, [window.u, window.v], [window.h, window.h]);
  }, [plane, state.u, state.v, state.h]);
  if (!session.exact) return null;
  const exact = (make) => () => (panes.current.both?.cut ? make(panes.current.both) : null);
  const files = [
    { id: "svg", text: "SVG", name: "difference.svg", make: exact(svgOfPair) },
    { id: "pdf", text: "PDF", name: "difference.pdf", make: exact(async (pane) => (
      await pane.askAbout("pair/figure", { format: "pdf" })).arrays.file) },
    { id: "png", text: "PNG", name: "difference.png", make: exact((pane) => pane.png()) },
    { id: "csv", text: "CSV", name: "difference.csv", make: exact((pane) => pairCsvOf({ ...pane.cut, names: session.classes })) },
  ];
  return html`<${TakeAlong} id="pair" files=${files} code=${code} />`;
}

/** Return the refinement of both as SVG. */
function svgOfPair(pane) {
  const { width, height } = pane.size;
  const theme = themeOf();
  const { arrays } = pane.cut;
  return svgOf({
    ...pane.cut, pieces: null, boundary: null, colours: pane.colours, window: pane.window,
    aspect: width / height, ink: INK[theme], paper: PAPER[theme], points: [],
    edges: [[arrays.firstBoundary, ""], [arrays.otherBoundary, "14 10"]],
  });
}
