// The Boolean lab: a truth table to click, and what is known of the function.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { number } from "../facts.js";
import { booleanPythonOf, tableCsvOf } from "../lab_copies.js";
import { TakeAlong } from "../take_along.js";
import { barsOf, flipped, lineOf, netOf, resized, sizesOf } from "../boolean_pictures.js";

/** The view, as all.js lists it. */
export const view = {
  name: "boolean", title: "Boolean lab", isThere: (session) => Boolean(session.views?.boolean), isApart: true,
  isOffline: false, View: BooleanLab,
  fields: { bits: { kind: "word", start: "0110" } },
};

function BooleanLab({ api, session, state, update }) {
  const bits = /^[01]+$/.test(state.bits) && Math.log2(state.bits.length) % 1 === 0
    && state.bits.length >= 2 && state.bits.length <= 2 ** session.views.boolean.most ? state.bits : "0110";
  const [facts, setFacts] = useState(null);
  const [refusal, setRefusal] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    setRefusal("");
    api.post("boolean/function", { bits }, stop.signal).then(
      (answer) => setFacts(answer.facts),
      (error) => error.name === "AbortError" || error.status === 409 || setRefusal(error.message),
    );
    return () => stop.abort();
  }, [bits]);
  const read = (formula) => {
    setRefusal("");
    api.post("boolean/function", { bits, formula }).then(
      (answer) => update({ bits: answer.facts.bits }, true), (error) => setRefusal(error.message));
  };
  const n = Math.log2(bits.length);
  const isKnown = facts?.bits === bits;
  return html`<div class="view">
    <section class="stage" aria-label="Boolean lab">
      <div class="bar">
        <label>Inputs <select id="boolean-inputs" value=${n} onChange=${(event) => update({ bits: resized(bits, Number(event.target.value)) }, true)}>
          ${Array.from({ length: session.views.boolean.most }, (_, k) => html`<option value=${k + 1}>${k + 1}</option>`)}</select></label>
        <label>Formula <input id="boolean-formula" size="22" placeholder="x1 xor x2 and not x3"
          onChange=${(event) => event.target.value.trim() && read(event.target.value)} /></label>
        <button id="boolean-negate" onClick=${() => update({ bits: flipped(bits) }, true)}>Negate</button>
        <button id="boolean-class" disabled=${!isKnown || facts.classBits === bits}
          onClick=${() => update({ bits: facts.classBits }, true)}>Smallest of its class</button>
      </div>
      ${refusal && html`<p class="refused" role="status" id="boolean-refusal">${refusal}</p>`}
      <div class="truth" id="truth" role="group" aria-label="Truth table: inputs, first one first">
        ${[...bits].map((bit, k) => html`<button aria-pressed=${bit === "1" ? "true" : "false"}
          aria-label=${`${k.toString(2).padStart(n, "0")} is ${bit === "1" ? "true" : "false"}`}
          onClick=${() => update({ bits: flipped(bits, k) }, true)}>${k.toString(2).padStart(n, "0")}<b>${bit}</b></button>`)}
      </div>
      ${facts && html`<${Line} facts=${facts} /><${Network} facts=${facts} />`}
    </section>
    <aside class="side">
      ${facts && html`<${Facts} facts=${facts} isKnown=${isKnown} /><${Spectrum} facts=${facts} />
        <${Trials} api=${api} facts=${facts} key=${facts.bits} /><${Copies} api=${api} facts=${facts} />`}
    </aside>
  </div>`;
}

function Facts({ facts, isKnown }) {
  return html`<section class="card" aria-labelledby="boolean-facts-title"><h2 id="boolean-facts-title">The function</h2>
    <dl class="facts" id="boolean-facts" aria-busy=${isKnown ? "false" : "true"}>
      <dt>number</dt><dd id="boolean-number">${facts.number} of ${facts.n} inputs</dd>
      <dt>NPN class</dt><dd id="boolean-npn">${facts.class}, with ${facts.classSize} functions</dd>
      <dt>true at</dt><dd>${facts.true} of ${2 ** facts.n} inputs</dd>
      <dt>swaps</dt><dd id="boolean-swaps">${facts.swaps}, along weights ${facts.weights.join(" ")}</dd>
      <dt>degree</dt><dd>${facts.degree}</dd>
      <dt>influence</dt><dd>${number(facts.influence)}: ${facts.influences.map((each) => number(each, 3)).join(", ")}</dd>
      <dt>entropy</dt><dd>${number(facts.entropy)} bits</dd>
    </dl></section>`;
}

function Copies({ api, facts }) {
  const drawn = (of, format) => async () => (
    await api.as("c").post("boolean/figure", { bits: facts.bits, of, format })).arrays.file;
  const figures = ["line", "spectrum"].flatMap((of) => ["svg", "pdf", "png"].map((format) => ({
    id: `${of}-${format}`, text: `${of === "line" ? "Line" : "Spectrum"} ${format.toUpperCase()}`,
    name: `${of}-${facts.n}-${facts.number}.${format}`, make: drawn(of, format),
  })));
  const files = [...figures, {
    id: "csv", text: "CSV", name: `function-${facts.n}-${facts.number}.csv`, make: () => tableCsvOf(facts),
  }];
  return html`<${TakeAlong} id="boolean" files=${files} code=${booleanPythonOf(facts)} />`;
}

function Spectrum({ facts }) {
  const plot = barsOf(facts.spectrum);
  const largest = [...facts.spectrum].sort((a, b) => Math.abs(b.coefficient) - Math.abs(a.coefficient))[0];
  return html`<section class="card" aria-labelledby="spectrum"><h2 id="spectrum">Fourier spectrum</h2>
    <svg class="plot" id="boolean-spectrum" viewBox=${`0 0 ${plot.width} ${plot.height}`} role="img"
      aria-label=${`${facts.spectrum.length} coefficients by size of the set; the largest is ${number(largest.coefficient, 3)} of ${largest.set}`}>
      ${plot.bars.map((bar) => html`<rect x=${bar.x} y=${bar.y} width=${bar.width} height=${bar.height} class=${`bar-${bar.size % 4}`}>
        <title>${bar.set}: ${number(bar.value, 4)}</title></rect>`)}
      <line class="axis" x1=${plot.left} x2=${plot.right} y1=${plot.zero} y2=${plot.zero} />
      ${plot.up.map((tick) => html`<text x=${plot.left - 6} y=${tick.at + 4} text-anchor="end">${tick.text}</text>`)}
      ${plot.sizes.map((size) => html`<text x=${size.at} y=${plot.height - 4} text-anchor="middle">${size.text}</text>`)}
    </svg>
    <p class="quiet">Coefficients of all sets of inputs, by how many a set has.</p></section>`;
}

function Line({ facts }) {
  const plot = lineOf(facts.line);
  return html`<figure class="card" aria-labelledby="line-title"><h2 id="line-title">Along its best line</h2>
    <p class="quiet">${lineText(facts)}</p>
    <svg class="plot" id="boolean-line" viewBox=${`0 0 ${plot.width} ${plot.height}`} role="img"
      aria-label=${`The inputs from left to right: ${facts.line.inputs.map((each) => `${each.input} is ${each.value}`).join(", ")}`}>
      <line class="axis" x1="0" x2=${plot.width} y1=${plot.zero} y2=${plot.zero} />
      ${plot.zeros.map((at) => html`<line class="swap" x1=${at} x2=${at} y1="8" y2=${plot.height - 8} />`)}
      <path class="network-line" d=${plot.path} />
      ${plot.dots.map((dot) => html`<circle cx=${dot.x} cy=${plot.zero} r="6" class=${dot.value ? "true" : "false"}>
        <title>${dot.input}: ${dot.value}</title></circle>`)}
    </svg></figure>`;
}

/** Return what the line shows, in words. */
function lineText({ weights, swaps }) {
  const sum = weights.map((weight, k) => `${weight}·x${k + 1}`).join(" + ").replaceAll("+ -", "− ");
  const times = swaps === 0 ? "never" : swaps === 1 ? "once" : `${swaps} times`;
  return `Ordered by ${sum}, the function changes ${times}${swaps ? ", and no line has fewer changes" : ""}. `
    + "The curve is the network with one unit for each change.";
}

function Network({ facts }) {
  const [chosen, setChosen] = useState(facts.smallest);
  const seen = useRef(facts.bits);
  if (seen.current !== facts.bits) {
    seen.current = facts.bits;
    setChosen(facts.smallest);
  }
  const at = Math.min(chosen, facts.networks.length - 1);
  const network = facts.networks[at];
  const plot = netOf(network);
  return html`<figure class="card" aria-labelledby="network"><h2 id="network">Networks that compute it</h2>
    <div class="bar"><label>Built as <select id="boolean-network" value=${at} onChange=${(event) => setChosen(Number(event.target.value))}>
      ${facts.networks.map((each, k) => html`<option value=${k}>${each.how}${k === facts.smallest ? ", the smallest" : ""}</option>`)}</select></label></div>
    <p class="quiet" id="boolean-built">${network.sizes.join("-")} with ReLU, ${network.parameters} weights and biases;${network.isRight ? " right at all inputs, in rational arithmetic." : " wrong somewhere: this is a fault of ours."}</p>
    <svg class="plot net" viewBox=${`0 0 ${plot.width} ${plot.height}`} role="img" aria-label=${`A network ${network.sizes.join("-")}`}>
      ${plot.edges.map((edge) => html`<line x1=${edge.x1} y1=${edge.y1} x2=${edge.x2} y2=${edge.y2}
        class=${edge.weight > 0 ? "positive" : "negative"} stroke-width=${edge.thickness}><title>${number(edge.weight)}</title></line>`)}
      ${plot.labels.map((label) => html`<text class="weight" x=${label.x} y=${label.y} text-anchor="middle">${label.text}</text>`)}
      ${plot.nodes.map((node) => html`<circle cx=${node.x} cy=${node.y} r="15" /><text x=${node.x} y=${node.y + 4} text-anchor="middle">${node.text}</text>`)}
    </svg></figure>`;
}

function Trials({ api, facts }) {
  const [rows, setRows] = useState([]);
  const [state, setState] = useState("");
  const stop = useRef(null);
  useEffect(() => () => stop.current?.abort(), []);
  const run = async () => {
    stop.current?.abort();
    const own = new AbortController();
    stop.current = own;
    setRows([]);
    const sizes = sizesOf(facts.n, facts.swaps);
    try {
      for (const [k, [width, depth]] of sizes.entries()) {
        setState(`Training size ${k + 1} of ${sizes.length} …`);
        const answer = await api.post("boolean/trials", { bits: facts.bits, width, depth, networks: 100 }, own.signal);
        setRows((before) => [...before, ...answer.facts.trials]);
      }
      setState("100 networks of each size, with a 95% interval.");
    } catch (error) {
      if (error.name !== "AbortError") setState(error.message);
    }
  };
  return html`<section class="card" aria-labelledby="trials"><h2 id="trials">How often training finds it</h2>
    <button id="boolean-train" onClick=${run}>Train 100 networks of each size</button>
    <p class="quiet" role="status" id="boolean-trials-state">${state}</p>
    ${rows.length > 0 && html`<table id="boolean-trials"><thead><tr><th>size</th><th>activation</th><th class="num">found by</th><th class="num">interval</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr><td>${row.size}</td><td>${row.activation}</td><td class="num">${Math.round(100 * row.fraction)}%</td>
        <td class="num">${Math.round(100 * row.low)} to ${Math.round(100 * row.high)}%</td></tr>`)}</tbody></table>`}
    ${facts.earlier.length > 0 && html`<p class="quiet" id="boolean-records">In our records of figure 3.5 the smallest network that learned this class:
      ${facts.earlier.map((each) => ` ${each.size} with ${each.activation}, ${each.solved} of ${each.networks}`).join(";")}.</p>`}
  </section>`;
}
