// Pictures of Boolean functions: spectrum, line and network, as numbers for SVG. Pure functions.

import { short, ticks } from "./plot.js";

/** Return a table with one value turned, or all. */
export function flipped(bits, at = -1) {
  return [...bits].map((bit, k) => (at < 0 || k === at ? (bit === "1" ? "0" : "1") : bit)).join("");
}

/** Return a table of other inputs: repeated, so that a new input does not matter, or its first part. */
export function resized(bits, n) {
  let next = bits;
  while (next.length < 2 ** n) next = [...next].map((bit) => bit + bit).join("");
  return next.length > 2 ** n ? [...next].filter((_, k) => k % (next.length / 2 ** n) === 0).join("") : next;
}

/** Return the widths and depths that are trained: about the bound, and two layers. */
export function sizesOf(n, swaps) {
  const wide = new Set([Math.max(1, swaps - 1), Math.max(1, swaps), swaps + 1, 2 * swaps + 1]);
  const widths = [...wide].map((width) => Math.min(width, 24)).sort((a, b) => a - b);
  return [...widths.map((width) => [width, 1]), [2, 2], [3, 2], [Math.max(4, n), 2]];
}

/** Return bars of a spectrum, sorted by the size of the sets. */
export function barsOf(spectrum) {
  const [width, height, left, right, top, bottom] = [340, 170, 34, 336, 8, 148];
  const sorted = [...spectrum].sort((a, b) => a.size - b.size || Math.abs(b.coefficient) - Math.abs(a.coefficient));
  const most = Math.max(...sorted.map((each) => Math.abs(each.coefficient)));
  const low = Math.min(0, ...sorted.map((each) => each.coefficient));
  const high = Math.max(0, ...sorted.map((each) => each.coefficient));
  const y = (value) => top + ((high - value) / (high - low || most || 1)) * (bottom - top);
  const groups = Math.max(...sorted.map((each) => each.size));
  const step = (right - left) / (sorted.length + groups);
  const sizes = new Map();
  const bars = sorted.map((each, k) => {
    const x = left + (k + each.size) * step;
    sizes.set(each.size, [...(sizes.get(each.size) ?? []), x + step / 2]);
    const [from, to] = [y(Math.max(0, each.coefficient)), y(Math.min(0, each.coefficient))];
    return {
      x, y: from, width: Math.max(1, step * 0.86), height: Math.max(to - from, 0.5), set: each.set,
      value: each.coefficient, size: each.size,
    };
  });
  const up = ticks(low, high, 4).map((value) => ({ at: y(value), text: short(value) }));
  const below = [...sizes].map(([size, places]) => ({
    at: places.reduce((a, b) => a + b) / places.length, text: String(size),
  }));
  return { width, height, left, right, zero: y(0), bars, up, sizes: below };
}

/** Return the inputs on a line, where the function changes, and the network over it. */
export function lineOf(line) {
  const [width, height] = [640, 130];
  const [first, last] = [line.t[0], line.t.at(-1)];
  const x = (at) => 10 + ((at - first) / (last - first)) * (width - 20);
  const zero = height / 2;
  const places = line.t.map((at, k) => `${x(at).toFixed(1)},${(zero - line.values[k] * (zero - 14)).toFixed(1)}`);
  return {
    width, height, zero, path: `M${places.join("L")}`, zeros: line.zeros.map(x),
    dots: line.inputs.map((each) => ({ x: x(each.at), value: each.value, input: each.input })),
  };
}

/** Return nodes and edges of a network in layers; weights are written where there are few. */
export function netOf({ sizes, layers }) {
  const most = Math.max(...sizes);
  const [width, height] = [640, Math.min(520, Math.max(150, most * 62))];
  const x = (layer) => 40 + (layer / (sizes.length - 1)) * (width - 80);
  const y = (layer, k) => height * ((k + 0.5) / sizes[layer]);
  const largest = Math.max(...layers.flatMap((layer) => layer.weights.flat().map(Math.abs)), 1e-300);
  const edges = [];
  const labels = [];
  const count = layers.reduce((sum, layer) => sum + layer.weights.flat().length, 0);
  layers.forEach((layer, depth) => layer.weights.forEach((row, to) => row.forEach((weight, from) => {
    if (weight === 0) return;
    const [x1, y1, x2, y2] = [x(depth), y(depth, from), x(depth + 1), y(depth + 1, to)];
    edges.push({ x1, y1, x2, y2, weight, thickness: (0.6 + 3.4 * Math.sqrt(Math.abs(weight) / largest)).toFixed(2) });
    const at = 0.34 + 0.14 * (from % 3);
    if (count <= 24) labels.push({ x: x1 + at * (x2 - x1), y: y1 + at * (y2 - y1) - 3, text: short(weight) });
  })));
  const nodes = sizes.flatMap((size, layer) => Array.from({ length: size }, (_, k) => ({
    x: x(layer), y: y(layer, k),
    text: layer === 0 ? `x${k + 1}` : short(+layers[layer - 1].bias[k].toPrecision(3)),
  })));
  return { width, height, edges, labels, nodes };
}
