// The view of one slice: the plane, what lies under the pointer, and what was clicked.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { INK, LAYERS, PAPER, classColour, css, themeOf } from "../colours.js";
import { csvOf, pythonOf, svgOf } from "../copy.js";
import { Examples } from "../examples.js";
import { neighbours } from "../geometry.js";
import { give } from "../files.js";
import { CellFacts, LinePlot, PointFacts, number } from "../facts.js";
import { Pane } from "../pane.js";
import { toAddress } from "../address.js";
import { halves } from "../window.js";

const PLANES = {
  examples: "through three examples", components: "principal components",
  gradient: "along the gradient of A", adversarial: "adversarial direction from A",
  active: "active subspace, through A", random: "random, through A", whole: "the input space",
};
const NAMED = 24; // classes that the legend names
const RESTED = 120; // milliseconds without a change before a place is asked about
const HOVER = 70; // milliseconds that the pointer rests before the server is asked

/** Return what a plane is asked by. */
export function planeAsked(session, state) {
  const kind = session.planes.includes(state.kind) ? state.kind : session.planes[0];
  const rows = state.rows.length ? state.rows : session.rows;
  return {
    kind,
    rows: kind === "examples" ? rows : kind === "components" || kind === "whole" ? [] : rows.slice(0, 1),
    seed: kind === "random" || kind === "gradient" ? state.seed : 0,
  };
}

/** Load the plane of a state; return it with its request, or the reason why there is none. */
export function usePlane(api, session, state) {
  const asked = planeAsked(session, state);
  const key = JSON.stringify(asked);
  const [plane, setPlane] = useState(null);
  useEffect(() => {
    let isOver = false;
    api.post("plane", asked).then(
      ({ facts, arrays }) => isOver || setPlane({ facts, arrays, key, asked }),
      (error) => isOver || error.status === 409 || setPlane({ reason: error.message, key, asked }),
    );
    return () => { isOver = true; };
  }, [key]);
  return plane?.key === key ? plane : null;
}

/** Return the window of a state: the first of its plane where the address names none. */
export function windowOf(state, plane) {
  const { centre, half } = plane.facts;
  if (state.u === null || state.v === null || state.h === null) {
    return { u: centre[0], v: centre[1], h: half[1] };
  }
  return { u: state.u, v: state.v, h: state.h };
}

/** What is to be forgotten when the plane changes. */
export const NEW_PLANE = { u: null, v: null, h: null, line: null, at: null };

const NOW = { network: "first", step: -1 };

/** The view, as main.js lists it. */
export const view = { name: "slice", title: "Slice", isThere: () => true, isOffline: true, View: Slice, fields: {} };

/**
 * A window of one network, with what lies in it. Other views show more `below` it, `beside` it and
 * among what is `saved`; `frame` returns cuts that are known already.
 */
export function Slice({
  api, session, state, update, theme, seen = NOW, below = null, beside = null, saved = null,
  frame = null, onPane = null,
}) {
  const root = useRef(null);
  const pane = useRef(null);
  const plane = usePlane(api, session, state);
  const [news, setNews] = useState({ state: "plane" });
  const [cell, setCell] = useState(null);
  const [pointer, setPointer] = useState(null);
  const [example, setExample] = useState(null);
  const [point, setPoint] = useState(null);
  const [line, setLine] = useState(null);
  const [isLine, setIsLine] = useState(false);
  const now = useRef({});
  Object.assign(now.current, { state, update, isLine, plane, frame });

  useEffect(() => {
    let timer;
    const made = new Pane(root.current, { api, session, listeners: {
      onWindow: (window) => {
        made.setWindow(window);
        now.current.update(window);
      },
      onNews: (next) => setNews((before) => (next.state === "moving"
        ? { ...before, isLeast: next.isLeast } : { isLeast: before.isLeast, ...next })),
      onHover: (index, from) => {
        clearTimeout(timer);
        setCell(index < 0 ? null : { index });
        if (index < 0 || !from.cut) return;
        const near = neighbours(from.cut.cells, index);
        timer = setTimeout(() => from.askAbout("cell", { cell: index }).then(
          ({ facts }) => setCell((shown) => (shown?.index === index ? { index, near, ...facts } : shown)),
          () => {},
        ), HOVER);
      },
      onExample: setExample,
      onPointer: (place, away) => setPointer({ place, away }),
      onClick: (place, isShifted) => clicked(now.current, place, isShifted),
      onHome: () => now.current.update({ u: null, v: null, h: null }, true),
      at: () => now.current.state.at,
      line: () => now.current.state.line ?? now.current.begun,
      frame: (asked) => now.current.frame?.(asked),
    } });
    pane.current = made;
    globalThis.explorer = made;
    onPane?.(made);
    const onTheme = () => made.recolour();
    addEventListener("themechange", onTheme);
    return () => { removeEventListener("themechange", onTheme); made.close(); };
  }, []);

  function clicked(current, place, isShifted) {
    if (current.isLine || isShifted) {
      const begun = now.current.begun;
      now.current.begun = begun ? null : place;
      if (begun) {
        setIsLine(false);
        current.update({ line: [...begun, ...place] }, true);
      }
      pane.current.draw();
    } else current.update({ at: place }, true);
  }

  useEffect(() => {
    if (!plane) {
      pane.current.fade();
      setNews({ state: "plane" });
      return;
    }
    if (plane.reason) {
      pane.current.clear();
      return;
    }
    pane.current.setPlane(plane, plane.asked);
    pane.current.setWindow(windowOf(state, plane));
  }, [plane]);
  useEffect(() => {
    if (plane && !plane.reason) pane.current.setWindow(windowOf(state, plane));
  }, [state.u, state.v, state.h]);
  useEffect(() => pane.current.setNetwork(seen), [seen.network, seen.step]);
  useEffect(() => {
    pane.current.set({ colour: state.colour, edges: state.edges, points: state.points });
  }, [state.colour, state.edges, state.points]);
  useAnswer(api, plane, state.at, setPoint, "point", (at) => ({ at }), seen);
  useAnswer(api, plane, state.line, setLine, "segment", ([a, b, c, d]) => ({ begin: [a, b], end: [c, d] }), seen);
  useEffect(() => pane.current.draw(), [state.at, state.line, theme]);

  const label = plane?.facts ? `${statusText(news, session)} Window ${number(windowOf(state, plane).h * 2)} high.` : "";
  useEffect(() => pane.current.overlay.setAttribute("aria-label",
    `Plane ${PLANES[planeAsked(session, state).kind]}. ${label} Arrows move, plus and minus zoom, `
    + "0 goes back to the first window, Enter describes the region in the middle."), [label]);

  return html`<div class="view">
    <section class="stage" aria-label="Slice">
      <${Controls} ...${{ session, state, update, isLine, setIsLine }} />
      <div class="pane" id="pane" ref=${root}></div>
      ${plane?.facts?.found && html`<p class="quiet" id="found">Diamond: the nearest example with another answer that was found, ${number(Math.hypot(...plane.facts.found))} from A.</p>`}
      <p id="status" role="status" aria-live="polite">${plane?.reason
        ? html`<span class="refused">${plane.reason}</span>` : status(news, session)}</p>
      ${below}
      <${Legend} session=${session} state=${state} pane=${pane} news=${news} />
      <${LinePlot} line=${line} onClose=${() => update({ line: null }, true)} />
    </section>
    <aside class="side">
      ${beside}
      <${CellFacts} example=${example} cell=${cell} pointer=${pointer} session=${session} plane=${plane} />
      <${PointFacts} point=${point} isTrained=${session.steps.length > 0 && (seen.step < 0 || seen.step === session.steps[session.steps.length - 1])} api=${api} session=${session} onClose=${() => update({ at: null }, true)} />
      ${session.planes.includes("examples") && html`
        <${Examples} api=${api} session=${session} state=${state} update=${update} />`}
      <${Copies} ...${{ api, pane, session, plane, state, saved, seen }} />
    </aside>
  </div>`;
}

/** Ask for what belongs to a place or a segment whenever it changes. */
export function useAnswer(api, plane, place, set, name, asked, seen) {
  useEffect(() => {
    if (!place || !plane || plane.reason) {
      set(null);
      return undefined;
    }
    const stop = new AbortController();
    set((before) => before ?? { state: "computing" });
    const whole = { ...plane.asked, ...seen, ...asked(place) };
    const timer = setTimeout(() => api.post(name, whole, stop.signal).then(
      ({ facts, arrays }) => set({ facts, arrays, asked: whole }),
      (error) => error.name === "AbortError" || set({ reason: error.message }),
    ), RESTED);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [plane, JSON.stringify(place), seen.network, seen.step]);
}

export function Controls({ session, state, update, isLine, setIsLine, more = null }) {
  const asked = planeAsked(session, state);
  const colours = session.competing
    ? [["class", "class"], ["confidence", "confidence"]] : [["class", "value"]];
  if (session.exact) colours.push(["pattern", "activation pattern"], ["map", "affine map"]);
  return html`<div class="bar">
    ${session.planes.length > 1 && html`<label>Plane <select id="plane" value=${asked.kind}
      onChange=${(event) => update({ ...NEW_PLANE, kind: event.target.value }, true)}>
      ${session.planes.map((kind) => html`<option value=${kind}>${PLANES[kind]}</option>`)}
    </select></label>`}
    ${(asked.kind === "random" || asked.kind === "gradient") && html`<button id="again"
      onClick=${() => update({ ...NEW_PLANE, seed: state.seed + 1 }, true)}>Another</button>`}
    <label>Colour <select id="colour" value=${state.colour}
      onChange=${(event) => update({ colour: event.target.value }, true)}>
      ${colours.map(([name, text]) => html`<option value=${name}>${text}</option>`)}
    </select></label>
    ${session.exact && html`<label>Edges <select id="edges" value=${state.edges}
      onChange=${(event) => update({ edges: event.target.value }, true)}>
      ${[["plain", "all alike"], ["layer", "by layer"], ["none", "none"]].map(
        ([name, text]) => html`<option value=${name}>${text}</option>`)}
    </select></label>`}
    <label><input type="checkbox" id="points" checked=${state.points}
      onChange=${(event) => update({ points: event.target.checked }, true)} /> Data</label>
    ${more}
    ${!session.offline && setIsLine && html`<button id="line" aria-pressed=${isLine ? "true" : "false"}
      title="Click two points: the function along the segment between them"
      onClick=${() => setIsLine(!isLine)}>Segment</button>`}
    <button id="home" onClick=${() => update({ u: null, v: null, h: null }, true)}>Whole window</button>
  </div>`;
}

/** Return what the pane does, in a sentence. */
export function statusText(news, session) {
  if (news.isLeast) {
    return "Here float64 ends: points this close differ only by rounding.";
  }
  switch (news.state) {
    case "computing": {
      const after = news.layer ? `: ${news.cells} regions after ${news.layer}` : " …";
      return session.exact ? `Cutting the plane${after}` : "Evaluating the network …";
    }
    case "plane":
      return "Laying the plane …";
    case "more":
      return `${news.facts.cells} exact regions on ${(100 * news.facts.covered).toFixed(1)}% of the window; cutting the rest …`;
    case "raster":
      return `A raster of ${news.raster?.width ?? 0} × ${news.raster?.height ?? 0} predictions, not exact: ${session.refusal}`;
    case "exact": {
      const { facts } = news;
      const merged = facts.merged === facts.cells ? "" : `, ${facts.merged} when merged`;
      const lost = facts.unresolved
        ? ` Some regions too narrow for float64 may be missing in ${facts.unresolved} places.` : "";
      if (!facts.complete && session.offline) {
        return `${facts.cells} linear regions on ${(100 * facts.covered).toFixed(1)}% of the window, exact there; `
          + "this file holds no more of it, and shows a raster of the rest.";
      }
      if (!facts.complete) {
        return `${facts.cells} linear regions on the middle ${(100 * facts.covered).toFixed(1)}% of `
          + `the window, exact there; the rest is a raster: zoom in.${lost}`;
      }
      const line = facts.boundary > 0 ? ` Decision boundary of length ${number(facts.boundary)}.` : "";
      return `${facts.cells} linear region${facts.cells === 1 ? "" : "s"}${merged}, exact.${line}${lost}`;
    }
    default:
      return news.text ?? "";
  }
}

function status(news, session) {
  const text = statusText(news, session);
  return news.state === "refused" ? html`<span class="refused">${text}</span>` : text;
}

function Legend({ session, state, pane }) {
  const items = [];
  let more = 0;
  if (session.competing && (state.colour === "class" || state.colour === "confidence")) {
    const classes = pane.current?.classesInView() ?? [];
    for (const k of classes.slice(0, NAMED)) items.push([classColour(k), session.classes[k]]);
    more = classes.length - NAMED;
  }
  if (state.edges === "layer") {
    session.units.forEach((name, k) => items.push([LAYERS[k % LAYERS.length], `edge of ${name}`]));
  }
  if (!items.length) return null;
  return html`<ul class="legend" aria-label="Colours">${items.map(([colour, text]) => html`
    <li><i style=${{ background: css(colour) }}></i>${text}</li>`)}
    ${more > 0 && html`<li>and ${more} more</li>`}</ul>`;
}

function Copies({ api, pane, session, plane, state, saved, seen }) {
  const [said, setSaid] = useState("");
  const code = useMemo(() => {
    if (!plane || plane.reason) return "";
    const window = windowOf(state, plane);
    return pythonOf(session, plane.facts, [window.u, window.v], [window.h, window.h], seen.step);
  }, [plane, state.u, state.v, state.h, seen.step]);
  const save = (name, content, type) => {
    give(name, content, type);
    setSaid(`${name} is saved.`);
  };
  const exact = (make) => () => {
    if (pane.current.cut) make(pane.current);
    else setSaid("There are no exact regions to save yet.");
  };
  const svg = exact((shown) => save("slice.svg", svgOfPane(shown), "image/svg+xml"));
  const csv = exact((shown) => save("regions.csv", csvOf({ ...shown.cut, names: session.classes }), "text/csv"));
  const pdf = exact(async (shown) => {
    setSaid("Drawing the figure …");
    try {
      const asked = { colour: state.colour, edges: state.edges, format: "pdf" };
      const { arrays } = await shown.askAbout("figure", asked);
      save("slice.pdf", arrays.file, "application/pdf");
    } catch (error) {
      setSaid(error.message);
    }
  });
  const file = async () => {
    setSaid("Cutting the plane for the file …");
    const shown = pane.current;
    const { u, v, h, colour, edges, points } = state;
    try {
      const { arrays, facts } = await api.as("s").post("saved", {
        ...plane.asked, ...seen, centre: [shown.window.u, shown.window.v],
        half: halves(shown.window, shown.size), start: toAddress({ u, v, h, colour, edges, points }),
      });
      save("slice.html", arrays.file, "text/html");
      setSaid(`slice.html is saved: ${facts.cells} regions, ${Math.ceil(facts.bytes / 1000)} kB.`);
    } catch (error) {
      setSaid(error.message);
    }
  };
  const python = () => navigator.clipboard?.writeText(code).then(
    () => setSaid("The code is in the clipboard."), () => setSaid("Copy the code below."));
  return html`<section class="card" aria-labelledby="copies"><h2 id="copies">Take it along</h2>
    <div class="bar">
      <button id="save-svg" onClick=${svg}>SVG</button>
      ${session.exact && !session.offline && html`<button id="save-pdf" onClick=${pdf}>PDF</button>`}
      <button id="save-png" onClick=${() => pane.current.png().then((blob) => save("slice.png", blob, "image/png"))}>PNG</button>
      <button id="save-csv" onClick=${csv}>CSV</button>
      <button id="copy-code" onClick=${python}>Python</button>
      ${!session.offline && html`<button id="save-file" title="This plane with its exact regions, in one page that needs no server" onClick=${file}>One file</button>`}
    </div>
    <p class="quiet" role="status" id="copy-said">${said}</p>
    ${saved}
    <details><summary>Python that makes the same</summary><pre id="code">${code}</pre></details>
  </section>`;
}

/** Return what a pane shows as SVG. */
export function svgOfPane(pane) {
  const { width, height } = pane.size;
  const theme = themeOf();
  const points = pane.settings.points ? pane.pointsInView().map((point) => ({
    ...point, x: (point.x / height) * 1000, y: (point.y / height) * 1000,
  })) : [];
  return svgOf({
    ...pane.cut, pieces: pane.byOwner ? null : pane.cut.pieces, colours: pane.colours,
    window: pane.window, aspect: width / height, ink: INK[theme], paper: PAPER[theme], points,
  });
}
