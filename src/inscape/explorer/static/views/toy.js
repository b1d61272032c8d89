// The toy lab: data, a network and how it is trained; it learns on the server, and every frame shows
// its exact linear regions.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { classColour, css } from "../colours.js";
import { csvOf } from "../copy.js";
import { CellFacts, number } from "../facts.js";
import { neighbours } from "../geometry.js";
import { Pane } from "../pane.js";
import { TakeAlong } from "../take_along.js";
import { ToyControls } from "../toy_controls.js";
import {
  changed, changesOf, changesText, flatOf, historyCsv, pythonOfToy, readCsv, rowsOf, setupOf,
  withoutNearest,
} from "../toy_setup.js";
import { traceOf } from "../trace.js";
import { halves } from "../window.js";
import { fromBase64, unpacked } from "../wire.js";
import { svgOfPane } from "./slice.js";

/** The view, as all.js lists it. */
export const view = {
  name: "toy", title: "Toy lab", isThere: (session) => Boolean(session.views?.toy), isApart: true, isOffline: false,
  View: ToyLab,
  fields: {
    preset: { kind: "word", start: "" },
    toy: { kind: "word", start: "" },
    own: { kind: "numbers", start: [] },
    update: { kind: "number", start: 0 },
    look: { kind: "numbers", start: null, length: 3 },
  },
};

const XOR = [[-1, -1, 0], [-1, 1, 1], [1, -1, 1], [1, 1, 0]];
const KEPT = 60; // points of one's own that the address holds
const QUICK = 500; // updates between two frames on the way to a step of the address
const HOVER = 70;
const FRAME = { edges: "plain", points: true };

/** Return the preset of a state, the first where the address names none. */
export function presetOf(session, name) {
  const { presets } = session.views.toy;
  return presets.find((preset) => preset.name === name)
    ?? presets.find((preset) => preset.name === "width-3-closes") ?? presets[0];
}

function ToyLab({ api, session, state, update, theme }) {
  const { start } = session.views.toy;
  const preset = presetOf(session, state.preset);
  const base = useMemo(() => ({ ...start, ...preset.setup }), [preset.name]);
  const changes = useMemo(() => changesOf(state.toy, start), [state.toy]);
  const [many, setMany] = useState([]); // points of a file, too many for the address
  const rows = useMemo(() => (state.own.length ? rowsOf(state.own) : many), [state.own.join(), many]);
  const own = rows.length ? rows : preset.setup.rows ?? XOR;
  const setup = useMemo(() => setupOf(start, preset, changes, own), [preset.name, state.toy, rows]);
  /** Return what changes in the state with other points. */
  const withRows = (next) => {
    setMany(next.length > KEPT ? next : []);
    return { own: next.length > KEPT ? [] : flatOf(next), update: 0 };
  };
  const [brush, setBrush] = useState(0);
  const [said, setSaid] = useState("");
  const lab = useLab({ api, setup, preset, state, update, own, brush, withRows });
  useEffect(() => lab.pane.current?.recolour(), [theme]);
  useEffect(() => lab.pane.current?.set({ colour: state.colour, ...FRAME }), [state.colour]);

  const change = (name, value) => {
    const next = changed(changes, name, value, base);
    update({ toy: changesText(next), update: 0, look: null }, true);
  };
  const choose = (name) => update({ preset: name, toy: "", look: null, ...withRows([]) }, true);
  const open = async (file) => {
    const read = readCsv(await file.text());
    if (read.error) setSaid(read.error);
    else {
      const next = changesText({ ...changes, data: "own", labels: read.labels });
      update({ toy: next, look: null, ...withRows(read.rows) }, true);
      setSaid(`${read.rows.length} points from ${file.name}${read.rows.length > KEPT ? "; they are too many for the address" : ""}.`);
    }
  };
  return html`<div class="view">
    <section class="stage" aria-label="Toy lab">
      <${Bar} lab=${lab} setup=${setup} state=${state} update=${update} />
      <div class="pane" id="toy-pane" ref=${lab.root}></div>
      <p id="toy-status" role="status">${lab.refusal
        ? html`<span class="refused">${lab.refusal}</span>` : statusOf(lab, setup, preset)}</p>
      <${Key} lab=${lab} setup=${setup} />
      <${Trace} lab=${lab} preset=${preset} />
    </section>
    <aside class="side">
      <${Presets} presets=${session.views.toy.presets} preset=${preset} choose=${choose} isChanged=${state.toy !== ""} />
      <${ToyControls} setup=${setup} change=${change} brush=${brush} setBrush=${setBrush}
        open=${open} said=${said} clear=${() => lab.clearOwn()} />
      <${CellFacts} cell=${lab.cell} pointer=${null} session=${{ exact: true }} />
      <${Copies} lab=${lab} setup=${setup} start=${start} state=${state} />
    </aside>
  </div>`;
}

/** Return a window as the address holds it. */
function lookOf({ u, v, h }) {
  return [u, v, h];
}

/** Hold the pane, the stream of frames and what was measured. */
function useLab({ api, setup, preset, state, update, own, brush, withRows }) {
  const root = useRef(null);
  const pane = useRef(null);
  const stop = useRef(null);
  const [frame, setFrame] = useState(null);
  const [about, setAbout] = useState(null);
  const [history, setHistory] = useState([]);
  const [isRunning, setIsRunning] = useState(false);
  const [refusal, setRefusal] = useState("");
  const [cell, setCell] = useState(null);
  const now = useRef({});
  const lab = { root, pane, frame, about, history, isRunning, refusal, cell };
  Object.assign(now.current, { setup, state, own, brush, update, lab });

  useEffect(() => {
    let timer;
    const made = new Pane(root.current, {
      api: { client: api.client, post: (name, asked, signal) => api.post(`toy/${name}`, asked, signal) },
      session: { exact: true, classes: ["0", "1"], smallest: 1e-10 }, name: "toy",
      listeners: {
        onWindow: (window) => {
          now.current.window = window;
          now.current.update({ look: lookOf(window) });
          made.setWindow(window);
          if (stop.current) {
            clearTimeout(now.current.timer);
            now.current.timer = setTimeout(() => now.current.go(), 150);
          }
        },
        onHover: (index, from) => {
          clearTimeout(timer);
          setCell(index < 0 ? null : { index });
          if (index < 0 || !from.cut || stop.current) return;
          const near = neighbours(from.cut.cells, index);
          timer = setTimeout(() => api.post("toy/cell", { view: from.cut.facts.view, cell: index }).then(
            ({ facts }) => setCell((shown) => (shown?.index === index ? { index, near, ...facts } : shown)),
            () => {},
          ), HOVER);
        },
        onNews: (news) => news.state === "refused" && setRefusal(news.text),
        onClick: (place, isShifted) => now.current.click(place, isShifted),
        onHome: () => {
          now.current.window = null;
          now.current.update({ look: null });
          now.current.go({ until: now.current.lab.frame?.step ?? 0 });
        },
      },
    });
    pane.current = made;
    globalThis.toyPane = made;
    const onTheme = () => made.recolour();
    addEventListener("themechange", onTheme);
    return () => {
      removeEventListener("themechange", onTheme);
      stop.current?.abort();
      made.close();
    };
  }, []);

  /** Take a frame: the first of a stream has the points of the training. */
  function take(facts, arrays) {
    const shown = pane.current;
    if (arrays.pointU) {
      shown.session.classes = facts.names.length ? facts.names : ["value"];
      setAbout(facts);
      const label = Uint16Array.from(arrays.pointLabel, (each) => (facts.names.length ? each : 65535));
      const plane = {
        facts: { ...facts.window, anchors: [] },
        arrays: { u: arrays.pointU, v: arrays.pointV, label, away: new Float32Array(label.length), row: label },
      };
      shown.plane = plane;
      shown.asked = { kind: "whole", rows: [], seed: 0 };
    }
    shown.session.exact = facts.exact;
    shown.window = { u: facts.centre[0], v: facts.centre[1], h: facts.half[1] };
    shown.isStale = false;
    shown.show(facts, arrays);
    setFrame(facts);
    setHistory((before) => {
      const kept = before.filter((each) => each.step < facts.step);
      return [...kept, { step: facts.step, loss: facts.loss, measures: facts.measures }];
    });
  }

  /** Train until an update; what was running is stopped. */
  async function go({ until = now.current.until, interval = preset.interval, fresh = false } = {}) {
    stop.current?.abort();
    const own = new AbortController();
    stop.current = own;
    now.current.until = until;
    setIsRunning(true);
    setRefusal("");
    const { window } = now.current;
    const size = pane.current.size;
    const asked = { setup: now.current.setup, until, interval, fresh };
    if (window) Object.assign(asked, { centre: [window.u, window.v], half: halves(window, size) });
    let last = 0;
    try {
      await api.stream("toy/train", asked, (event) => {
        if (own.signal.aborted) return;
        if (event.error) setRefusal(event.error);
        if (!event.frame) return;
        const { facts, arrays } = unpacked(fromBase64(event.frame));
        last = facts.step;
        take(facts, arrays);
      }, own.signal);
    } catch (error) {
      if (error.name !== "AbortError") setRefusal(error.message);
    }
    if (stop.current !== own) return;
    stop.current = null;
    setIsRunning(false);
    if (last) now.current.update({ update: last });
  }

  function halt() {
    const step = now.current.lab.frame?.step ?? 0;
    stop.current?.abort();
    stop.current = null;
    setIsRunning(false);
    now.current.update({ update: step });
  }

  function click(place, isShifted) {
    if (now.current.setup.data !== "own") return;
    const next = isShifted
      ? withoutNearest(now.current.own, place) : [...now.current.own, [...place, now.current.brush]];
    setOwn(next);
  }

  function setOwn(next) {
    const { window } = pane.current; // the picture stays where it is while points are set
    now.current.update({ ...withRows(next), look: lookOf(window) }, true);
  }

  Object.assign(now.current, { go, click });
  const key = JSON.stringify(setup);
  useEffect(() => {
    setHistory([]);
    setCell(null);
    const [u, v, h] = state.look ?? [];
    now.current.window = state.look ? { u, v, h } : null;
    go({ until: Math.min(100_000, Math.max(0, state.update)), interval: QUICK });
  }, [key]);
  return {
    ...lab, go, halt,
    clearOwn: () => setOwn([]),
    step: () => go({ until: (frame?.step ?? 0) + preset.interval }),
    reset: () => { setHistory([]); now.current.update({ update: 0 }); go({ until: 0, fresh: true }); },
    train: () => {
      const step = frame?.step ?? 0;
      go({ until: step < preset.updates ? preset.updates : step + preset.updates });
    },
  };
}

/** Return what is seen, in a sentence. */
function statusOf(lab, setup, preset) {
  const { frame } = lab;
  if (!frame) return "Placing the points …";
  const loss = frame.loss === null ? "not trained yet" : `loss ${number(frame.loss, 3)}`;
  const shown = frame.exact
    ? `${frame.cells} linear regions${frame.complete ? "" : " in the middle"}, exact`
    : `a raster, for ${setup.activation === "relu" ? "this network" : setup.activation} is not piecewise linear`;
  const end = !lab.isRunning && frame.step >= preset.updates ? " That is what the preset is about." : "";
  return `Update ${frame.step}: ${loss}; ${shown}.${end}`;
}

function Bar({ lab, setup, state, update }) {
  const isValue = lab.about && !lab.about.names.length;
  const colours = isValue ? [["class", "value"]] : [["class", "class"], ["confidence", "confidence"]];
  if (lab.frame?.exact && !lab.isRunning) colours.push(["pattern", "activation pattern"], ["map", "affine map"]);
  return html`<div class="bar">
    <button id="toy-train" aria-pressed=${lab.isRunning ? "true" : "false"}
      onClick=${lab.isRunning ? lab.halt : lab.train}>${lab.isRunning ? "Stop" : "Train"}</button>
    <button id="toy-step" disabled=${lab.isRunning} onClick=${lab.step}>Step</button>
    <button id="toy-reset" onClick=${lab.reset}>Reset</button>
    <label>Colour <select id="toy-colour" value=${state.colour}
      onChange=${(event) => update({ colour: event.target.value }, true)}>
      ${colours.map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select></label>
    <span class="quiet" id="toy-size">${lab.about ? `${[2, ...setup.hidden, Math.max(1, lab.about.names.length > 2 ? lab.about.names.length : 1)].join("-")}, ${lab.about.parameters} parameters` : ""}</span>
  </div>`;
}

function Key({ lab, setup }) {
  if (!lab.about) return null;
  const note = setup.data === "own"
    ? "Click sets a point of the chosen class, Shift and click takes the nearest away." : "";
  return html`<ul class="legend" aria-label="Colours">
    ${lab.about.names.map((name, k) => html`<li><i style=${{ background: css(classColour(k)) }}></i>${name}</li>`)}
    ${note && html`<li class="quiet">${note}</li>`}</ul>`;
}

function Presets({ presets, preset, choose, isChanged }) {
  const works = [...new Set(presets.map((each) => each.reference.split(",")[0]))];
  return html`<section class="card" aria-labelledby="toy-presets"><h2 id="toy-presets">Preset</h2>
    <select id="toy-preset" aria-label="Preset" value=${preset.name} onChange=${(event) => choose(event.target.value)}>
      ${works.map((work) => html`<optgroup label=${work}>${presets
        .filter((each) => each.reference.startsWith(work))
        .map((each) => html`<option value=${each.name}>${each.title}</option>`)}</optgroup>`)}
    </select>
    <p id="toy-sentence">${preset.sentence}</p>
    <p class="quiet" id="toy-reference">${preset.reference}${isChanged ? "; changed below" : ""}</p>
  </section>`;
}

/** What is measured now, and one measure over the updates. */
function Trace({ lab, preset }) {
  const [name, setName] = useState("");
  const measures = lab.frame?.measures;
  if (!measures) return null;
  const names = ["loss", ...Object.keys(measures)];
  const chosen = names.includes(name) ? name : names.includes(preset.watch[0]) ? preset.watch[0] : "loss";
  const values = lab.history.map((frame) => (chosen === "loss" ? frame.loss : frame.measures[chosen]) ?? NaN);
  const trace = traceOf(lab.history.map((frame) => frame.step), values);
  return html`<section class="card" aria-labelledby="toy-measured"><h2 id="toy-measured">What is measured</h2>
    <dl class="facts measures" id="toy-measures">${Object.entries(measures).map(([each, value]) => html`
      <dt class=${preset.watch.includes(each) ? "watched" : ""}>${each}</dt><dd>${number(value)}</dd>`)}</dl>
    <label class="quiet">Over the updates <select id="toy-measure" value=${chosen}
      onChange=${(event) => setName(event.target.value)}>
      ${names.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
    ${trace && html`<svg class="plot" viewBox=${`0 0 ${trace.width} ${trace.height}`} role="img"
      aria-label=${`${chosen} over the updates, now ${number(values.at(-1))}`}>
      ${trace.up.map((tick) => html`<line class="axis" x1=${trace.left} x2=${trace.right} y1=${tick.at} y2=${tick.at} />
        <text x=${trace.left - 6} y=${tick.at + 4} text-anchor="end">${tick.text}</text>`)}
      ${trace.across.map((tick) => html`<text x=${tick.at} y=${trace.bottom + 16} text-anchor="middle">${tick.text}</text>`)}
      <path d=${trace.path} stroke=${css(classColour(0))} /></svg>`}
  </section>`;
}

function Copies({ lab, setup, start, state }) {
  const code = pythonOfToy(setup, start, lab.frame?.step ?? 0);
  const names = lab.about?.names ?? [];
  const isOff = !lab.frame?.exact || lab.isRunning;
  const exact = (make) => () => (lab.pane.current?.cut ? make(lab.pane.current) : null);
  const files = [
    { id: "svg", text: "SVG", name: "toy.svg", isOff, make: exact(svgOfPane) },
    { id: "pdf", text: "PDF", name: "toy.pdf", isOff, make: exact(async (pane) => (
      await pane.askAbout("figure", { format: "pdf", colour: state.colour })).arrays.file) },
    { id: "png", text: "PNG", name: "toy.png", make: () => lab.pane.current.png() },
    { id: "csv", text: "Regions", name: "regions.csv", isOff, make: exact((pane) => csvOf({ ...pane.cut, names })) },
    { id: "history", text: "Training", name: "training.csv", make: () => historyCsv(lab.history) },
  ];
  return html`<${TakeAlong} id="toy" files=${files} code=${code} />`;
}
