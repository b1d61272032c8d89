// What is known of a region under the pointer, of a point that was clicked, and of a segment.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { classColour, css } from "./colours.js";
import { Thumb, useThumbs } from "./examples.js";
import { plotted } from "./plot.js";

/** Return a number in few digits. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(digits - 2) : String(+value.toPrecision(digits));
}

/** The region under the pointer. */
export function CellFacts({ cell, example, pointer, session }) {
  if (!session.exact && !example) return null;
  return html`<section class="card" aria-labelledby="region"><h2 id="region">Region under the pointer</h2>
    ${example && html`<p id="example">Example ${example.row}${example.label === 65535 ? "" : `, ${session.classes[example.label] ?? ""}`}: ${example.away < 1e-9 ? "in the plane" : `${number(example.away)} from the plane`}.</p>`}
    ${!cell ? html`<p class="quiet">Point at a region, or press Enter in the picture.</p>` : html`
    <dl class="facts" id="cell">
      <dt>number</dt><dd>${cell.index}${cell.region !== undefined && cell.region !== cell.index ? `, merged region ${cell.region}` : ""}</dd>
      ${cell.answer && html`<dt>answer</dt><dd>${cell.answer.text}${confidence(cell.answer)}</dd>`}
      ${cell.area !== undefined && html`
        <dt>area</dt><dd id="cell-area">${number(cell.area)}, ${cell.corners} corners</dd>
        <dt>neighbours</dt><dd id="cell-neighbours">${cell.near.length}</dd>`}
      ${cell.error !== undefined && html`
        <dt>max |f(x) − (Ax + b)|</dt><dd id="cell-error">${number(cell.error, 3)} in float64${cell.ownError === undefined || cell.precision === "float64" ? ""
          : `, ${number(cell.ownError, 3)} in ${cell.precision}`}; at ${cell.samples} points</dd>`}
      ${pointer && html`<dt>place</dt><dd>${number(pointer.place[0], 6)}, ${number(pointer.place[1], 6)}${pointer.away === null ? ""
        : html`; ${number(pointer.away)} from the boundary in this window`}</dd>`}
    </dl>
    ${cell.map && html`<table id="cell-map"><thead><tr><th>affine map</th><th class="num">value</th><th class="num">∂/∂u</th><th class="num">∂/∂v</th></tr></thead>
      <tbody>${cell.map.map((row) => html`<tr><th>${row.output}</th><td class="num">${number(row.value)}</td>
        <td class="num">${number(row.slopes[0])}</td><td class="num">${number(row.slopes[1])}</td></tr>`)}</tbody></table>`}
    ${cell.layers && html`<details><summary>Activation pattern</summary>${cell.layers.map((layer) => html`
      <p class="quiet">${layer.name}: ${layer.states > 2 ? `${layer.units} maxima` : `${layer.on} of ${layer.units} on`}</p>
      <code>${layer.pattern}</code>`)}</details>`}`}
  </section>`;
}

function confidence(answer) {
  return answer.confidence === undefined ? "" : ` (${(100 * answer.confidence).toFixed(1)}%)`;
}

/** The point that was clicked. */
export function PointFacts({ point, api, session, onClose, title = "The clicked point", id = "point", isTrained = false }) {
  const [similar, setSimilar] = useState(null);
  useEffect(() => {
    setSimilar(null);
    if (!point?.asked || session.offline) return undefined;
    const stop = new AbortController();
    api.post("similar", point.asked, stop.signal).then(({ facts }) => setSimilar(facts), () => {});
    return () => stop.abort();
  }, [point?.asked]);
  const nearest = useThumbs(api, (point?.facts?.nearest ?? []).map((each) => each.row));
  const alike = useThumbs(api, (similar?.similar ?? []).map((each) => each.row), true);
  if (!point) return null;
  const { facts } = point;
  return html`<section class="card" aria-labelledby=${id}><h2 id=${id}>${title}</h2>
    ${point.reason && html`<p class="refused">${point.reason}</p>`}
    ${point.state && html`<p class="quiet">Computing …</p>`}
    ${facts && html`
      <dl class="facts" id=${`${id}-facts`}>
        <dt>answer</dt><dd>${facts.answer.text}${confidence(facts.answer)}</dd>
        ${facts.boundaryEstimate !== undefined && html`<dt>to the boundary</dt>
          <dd>about ${number(facts.boundaryEstimate)} in the input space, by the map here (an estimate)</dd>`}
        ${facts.gradientNorm !== undefined && html`<dt>gradient norm</dt><dd>${number(facts.gradientNorm)}</dd>`}
        ${session.offline && facts.scores.slice(1, 2).map((each) => html`<dt>lead</dt>
          <dd>${number(facts.scores[0].value - each.value)} before ${each.name}</dd>`)}
      </dl>
      <${Pictures} facts=${facts} image=${session.image} />
      <h3>Nearest examples</h3>
      <table id="nearest"><tbody>${facts.nearest.map((each, k) => html`<tr>
        <td>${nearest[k]?.shape && html`<${Thumb} ...${nearest[k]} title=${`example ${each.row}`} />`}</td>
        <td>no. ${each.row}${each.label && `, ${each.label}`}</td><td class="num">${number(each.distance)} away</td></tr>`)}
      </tbody></table>
      ${similar?.similar && html`<h3>Training examples with the most similar gradients, of ${similar.searched}</h3>
      <table id="similar"><tbody>${similar.similar.map((each, k) => html`<tr>
        <td>${alike[k]?.shape && html`<${Thumb} ...${alike[k]} title=${`training example ${each.row}`} />`}</td>
        <td>no. ${each.row}</td><td class="num">cosine ${number(each.cosine, 3)}</td></tr>`)}</tbody></table>`}`}
    ${facts && !session.offline && isTrained && html`<${MadeBy} key=${JSON.stringify(point.asked)} ...${{ api, asked: point.asked }} />`}
    <button onClick=${onClose}>Close</button>
  </section>`;
}

/** What the training examples have added to the answer, once it is asked for. */
function MadeBy({ api, asked }) {
  const [known, setKnown] = useState(null);
  const stop = useRef(null);
  useEffect(() => () => stop.current?.abort(), []);
  const ask = () => {
    stop.current = new AbortController();
    setKnown({ state: "computing" });
    const { kind, rows, seed, at } = asked;
    api.post("made_by", { kind, rows, seed, at }, stop.current.signal).then(
      ({ facts }) => setKnown(facts),
      (error) => error.name === "AbortError" || setKnown({ reason: error.message }),
    );
  };
  const rows = [...(known?.up ?? []), ...(known?.down ?? [])];
  const thumbs = useThumbs(api, rows.map((each) => each.row), true);
  if (!known) return html`<button id="made-by" onClick=${ask}>Which training examples made this?</button>`;
  if (known.reason) return html`<p class="refused">${known.reason}</p>`;
  if (known.state) return html`<p class="quiet">Going through the training …</p>`;
  return html`<h3>What training added to output ${known.output}${known.exact ? "" : ", to first order"}</h3>
    <table id="made-by-table"><tbody>
      <tr><th colspan="2">before training</th><td class="num">${number(known.initial)}</td></tr>
      ${rows.map((each, k) => html`<tr>
        <td>${thumbs[k]?.shape && html`<${Thumb} ...${thumbs[k]} title=${`training example ${each.row}`} />`}</td>
        <td>no. ${each.row}${each.label ? `, ${each.label}` : ""}</td><td class="num">${signed(each.amount)}</td></tr>`)}
      <tr><th colspan="2">${known.others.rows} others</th><td class="num">${signed(known.others.amount)}</td></tr>
      ${Object.entries(known.rest).filter(([name, amount]) => Math.abs(amount) > 1e-9 || name === "residual").map(([name, amount]) => html`
        <tr><th colspan="2">${name}</th><td class="num">${signed(amount)}</td></tr>`)}
      <tr><th colspan="2">now</th><td class="num">${number(known.final)}</td></tr>
    </tbody></table>
    <p class="quiet">${known.training}.</p>`;
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${number(value, 3)}`;
}

/** The input at a point and its saliency, as pictures where inputs are images. */
function Pictures({ facts, image }) {
  if (!image || !facts.input) return null;
  const [channels, rows, columns] = image;
  return html`<div class="pair">
    <figure><${Signed} values=${facts.input} shape=${[channels, rows, columns]} grey=${true} /><figcaption>input</figcaption></figure>
    <figure><${Signed} values=${facts.saliency} shape=${[channels, rows, columns]} grey=${false} /><figcaption>saliency: gradient of the answer</figcaption></figure>
  </div>`;
}

function Signed({ values, shape, grey }) {
  const canvas = useRef(null);
  useEffect(() => {
    const [channels, rows, columns] = shape;
    const size = rows * columns;
    const image = new ImageData(columns, rows);
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    for (let i = 0; i < size; i += 1) {
      let sum = 0;
      for (let c = 0; c < channels; c += 1) sum += values[c * size + i];
      for (let c = 0; c < 3; c += 1) {
        const value = channels === 3 ? values[c * size + i] : values[i];
        const signed = sum / channels / most; // blue above zero, orange below
        const colour = signed > 0 ? [0, 114, 178] : [213, 94, 0];
        image.data[4 * i + c] = grey
          ? (255 * (value - low)) / (high - low || 1)
          : 255 + (colour[c] - 255) * Math.min(1, Math.abs(signed));
      }
      image.data[4 * i + 3] = 255;
    }
    canvas.current.width = columns;
    canvas.current.height = rows;
    canvas.current.getContext("2d").putImageData(image, 0, 0);
  }, [values]);
  return html`<canvas ref=${canvas} class="thumb large"></canvas>`;
}

/** The network along a segment, with every breakpoint. */
export function LinePlot({ line, onClose }) {
  if (!line) return null;
  if (!line.facts) return html`<p class="quiet">${line.reason ?? "Cutting the segment …"}</p>`;
  const { facts, arrays } = line;
  const plot = plotted(arrays.t, arrays.values, facts.names.length);
  const said = facts.exact
    ? `${facts.breakpoints} breakpoints on a length of ${number(facts.length)}: exact, and linear between them.`
    : `${arrays.t.length} points on a length of ${number(facts.length)}; this network is not piecewise linear.`;
  return html`<figure class="card" aria-labelledby="segment"><h2 id="segment">Along the segment</h2>
    <p class="quiet" id="breakpoints">${said}${facts.covered < 1 ? ` Only ${(100 * facts.covered).toFixed(0)}% was cut in time.` : ""}</p>
    <svg class="plot" viewBox=${`0 0 ${plot.width} ${plot.height}`} role="img" aria-label=${said}>
      ${plot.up.map((tick) => html`<line class="axis" x1=${plot.left} x2=${plot.right} y1=${tick.at} y2=${tick.at} />
        <text x=${plot.left - 6} y=${tick.at + 4} text-anchor="end">${tick.text}</text>`)}
      ${plot.knots.map((at) => html`<line class="knot" x1=${at} x2=${at} y1=${plot.bottom - 6} y2=${plot.bottom} />`)}
      ${plot.across.map((tick) => html`<text x=${tick.at} y=${plot.bottom + 16} text-anchor="middle">${tick.text}</text>`)}
      <text x=${(plot.left + plot.right) / 2} y=${plot.bottom + 30} text-anchor="middle">from the first point (0) to the second (1); a mark at every breakpoint</text>
      ${plot.paths.map((path, k) => html`<path d=${path} stroke=${css(classColour(facts.outputs[k]))} />`)}
    </svg>
    <ul class="legend">${facts.names.map((name, k) => html`<li><i style=${{ background: css(classColour(facts.outputs[k])) }}></i>${name}</li>`)}</ul>
    <button onClick=${onClose}>Close</button>
  </figure>`;
}
