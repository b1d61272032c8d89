// What can be chosen in the toy lab: data, network, training, controls.

import { html, useRef } from "./vendor/preact-htm.js";
import { classColour, css } from "./colours.js";
import { widthsOf } from "./toy_setup.js";

const DATA = [
  ["disc", "sum or product on a disc"], ["annulus", "sum or product on an annulus"],
  ["circle", "circle in an annulus"], ["xor-circles", "circles under XOR"], ["spiral", "two spirals"],
  ["half-plane", "half-plane"], ["ball", "ball and sphere"], ["own", "points of my own"],
];
const ACTIVATIONS = [["relu", "ReLU"], ["leaky_relu", "leaky ReLU"], ["tanh", "tanh"], ["gelu", "GELU"], ["identity", "none: linear"]];
const INITS = [["pytorch", "PyTorch's own"], ["glorot", "Glorot, uniform"], ["he_normal", "He, normal"], ["he_uniform", "He, uniform"]];
const CONTROLS = [["none", "none"], ["length-scale", "length scale"], ["norm-bias", "norm bias"]];
const PENALTIES = [
  ["none", "none"], ["weight-decay", "weight decay"], ["gradient-norm", "gradient norm"],
  ["path-length", "path length"], ["gradient-path-length", "gradient path length"],
  ["weights-product", "weights product (one ReLU layer)"],
];

/** All that can be chosen; `change(name, value)` is called with what was. */
export function ToyControls({ setup, change, brush, setBrush, open, said, clear }) {
  const file = useRef(null);
  const choice = (name, label, options) => html`<label>${label} <select id=${`toy-${name}`} value=${setup[name]}
    onChange=${(event) => change(name, event.target.value)}>
    ${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>`;
  const amount = (name, label, step = "any", min = 0) => html`<label>${label} <input id=${`toy-${name}`} type="number"
    step=${step} min=${min} value=${setup[name]} onChange=${(event) => {
      const value = Number(event.target.value);
      if (event.target.value !== "" && Number.isFinite(value)) change(name, value);
    }} /></label>`;
  const tick = (name, label) => html`<label><input id=${`toy-${name}`} type="checkbox" checked=${setup[name]}
    onChange=${(event) => change(name, event.target.checked)} /> ${label}</label>`;
  return html`<section class="card fields" aria-labelledby="toy-choices"><h2 id="toy-choices">What is trained</h2>
    <h3>Data</h3>
    <div class="bar">${choice("data", "", DATA)}
      ${(setup.data === "disc" || setup.data === "annulus") && choice("target", "", [["addition", "sum"], ["multiplication", "product"]])}
      ${setup.data === "own" ? html`
        <label>Class <select id="toy-brush" value=${brush} onChange=${(event) => setBrush(Number(event.target.value))}>
          ${[0, 1, 2, 3].map((k) => html`<option value=${k}>${k}</option>`)}</select>
          <i class="dot" style=${{ background: css(classColour(brush)) }}></i></label>
        <button id="toy-clear" onClick=${clear}>XOR again</button>
        <label class="file">CSV <input id="toy-file" type="file" accept=".csv,.txt,text/csv" ref=${file}
          onChange=${(event) => event.target.files[0] && open(event.target.files[0])} /></label>`
        : html`${amount("n", "points", 1, 4)} ${(setup.data === "circle" || setup.data === "xor-circles") && tick("normalise", "standardised")}`}
    </div>
    ${said && html`<p class="quiet" role="status" id="toy-said">${said}</p>`}
    <h3>Network</h3>
    <div class="bar"><label>hidden <input id="toy-hidden" size="9" value=${setup.hidden.join("-")}
      title="Units of each hidden layer, as in 8-8-8" onChange=${(event) => {
        const widths = widthsOf(event.target.value);
        if (widths) change("hidden", widths);
        else event.target.value = setup.hidden.join("-");
      }} /></label>
      ${choice("activation", "", ACTIVATIONS)} ${tick("symmetric", "symmetric")}</div>
    <div class="bar">${choice("init", "initial weights", INITS)} ${amount("scale", "variance ×")}</div>
    <div class="bar">${amount("shift", "biases around", "any", -100)} ${amount("bias", "±")} ${amount("seed", "seed", 1)}</div>
    <h3>Training</h3>
    <div class="bar">${choice("optimizer", "", [["adam", "Adam"], ["sgd", "SGD"]])} ${amount("lr", "rate")}
      ${amount("batch", "batch (0: all)", 1)} ${choice("loss", "loss", [["auto", "as the data ask"], ["mse", "squared error"]])}</div>
    <h3>Controls</h3>
    <div class="bar">${choice("control", "", CONTROLS)}
      ${setup.control === "length-scale" && amount("sigma", "sigma")}
      ${setup.control === "norm-bias" && html`${amount("mu", "norm")} ${amount("strength", "strength")}`}</div>
    <div class="bar">${choice("penalty", "penalty", PENALTIES)}
      ${setup.penalty !== "none" && amount("coefficient", "times")}</div>
  </section>`;
}
