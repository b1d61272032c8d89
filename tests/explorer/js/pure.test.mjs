// The pure functions of the page, run by node's own test runner (tests/explorer/test_page_functions.py).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const page = new URL("../../../src/inscape/explorer/static/", import.meta.url);
const module = (name) => import(new URL(name, page));
const geometry = await module("geometry.js");
const plane = await module("window.js");
const address = await module("address.js");
const colours = await module("colours.js");
const copy = await module("copy.js");
const plot = await module("plot.js");
const curves = await module("curves.js");
const { coarseFirst, frameKey, spaced } = await module("steps.js");
const { expanded } = await module("renderer.js");
const { unpacked, fromBase64 } = await module("wire.js");

const near = (a, b, off = 1e-12) => assert.ok(Math.abs(a - b) <= off, `${a} is not ${b}`);

// a square of four triangles around the origin
const cells = {
  vertices: new Float32Array([-1, -1, 1, -1, 1, 1, -1, 1, 0, 0]),
  corners: new Uint32Array([0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4]),
  first: geometry.offsets([3, 3, 3, 3]),
  centre: [2, 3],
  half: [1, 1],
};

test("areas of cells add up to the window, and centroids are those of triangles", () => {
  let sum = 0;
  for (let i = 0; i < 4; i += 1) sum += geometry.area(geometry.polygon(cells, i));
  near(sum, 4);
  const [x, y] = geometry.centroid(geometry.polygon(cells, 0));
  near(x, 0);
  near(y, -2 / 3);
  assert.deepEqual(geometry.centroid([[1, 1], [3, 3]]), [2, 2]);
});

test("neighbours share an edge, not only a corner", () => {
  assert.deepEqual(geometry.neighbours(cells, 0), [1, 3]);
  assert.deepEqual(geometry.neighbours(cells, 2), [1, 3]);
});

test("a place lies in the cell that holds it, and in none outside", () => {
  assert.equal(geometry.cellAt(cells, 0, -0.5), 0);
  assert.equal(geometry.cellAt(cells, 0.5, 0), 1);
  assert.equal(geometry.cellAt(cells, 2, 0), -1);
});

test("the distance to polylines is that to the nearest segment, not line", () => {
  const points = new Float32Array([0, 0, 1, 0, 5, 5, 5, 6]);
  const first = new Uint32Array([0, 2, 4]);
  near(geometry.distanceToLines(points, first, 0.5, 2), 2);
  near(geometry.distanceToLines(points, first, 4, 4), Math.SQRT2);
  assert.equal(geometry.distanceToLines(points, new Uint32Array([0]), 0, 0), Infinity);
});

const size = { width: 400, height: 200 };

test("pixels and places are inverse, and zooming keeps the place under the pointer", () => {
  const window = { u: 3, v: -2, h: 0.5 };
  const [u, v] = plane.placeOf(window, size, 37, 150);
  const [x, y] = plane.pixelOf(window, size, u, v);
  near(x, 37, 1e-9);
  near(y, 150, 1e-9);
  const next = plane.zoomed(window, size, 37, 150, 0.1, 1e-12, 1e3);
  const [u2, v2] = plane.placeOf(next, size, 37, 150);
  near(u2, u, 1e-12);
  near(v2, v, 1e-12);
  assert.equal(plane.zoomed(window, size, 0, 0, 1e-9, 0.1, 10).h, 0.1);
});

test("a cut is placed to a thousandth of a pixel in a window of 1e-10", () => {
  const cut = { centre: [1.5, 0.7], half: [2e-10, 1e-10] };
  const window = { u: 1.5 + 1e-10, v: 0.7, h: 1e-10 };
  const { scale, shift } = plane.rebasing(cut, window, size);
  near(scale[0], 1);
  near(shift[0], -0.5, 1e-5);
  assert.ok(plane.covers(cut, { u: 1.5, v: 0.7, h: 1e-10 }, size));
  assert.ok(!plane.covers(cut, window, size));
});

test("every state comes back from its address", () => {
  address.register({ ofAView: { kind: "number", start: -1 } });
  const state = {
    ...address.startState(), kind: "random", rows: [1, 22, 3], seed: 4, u: -1.25e-7, v: 3, h: 1e-10,
    colour: "map", points: false, line: [0, 1, 2, 3.5], at: [1, 2], ofAView: 40,
  };
  assert.deepEqual(address.fromAddress(`#${address.toAddress(state)}`), state);
  assert.equal(address.toAddress(address.startState()), "");
});

test("a field belongs to one view and has a kind that the address knows", () => {
  assert.throws(() => address.register({ rows: { kind: "numbers", start: [] } }), /two views/);
  assert.throws(() => address.register({ more: { kind: "thing", start: 0 } }), /unknown kind/);
});

test("what an address says wrongly is as at the start", () => {
  const state = address.fromAddress("#u=abc&h=-1&line=1_2&at=x_y&rows=1_b&seed=&points=false");
  assert.deepEqual(state, { ...address.startState(), points: false });
  assert.equal(address.fromAddress("#points=maybe").points, true);
});

test("confidence is nothing at chance and all at certainty", () => {
  assert.equal(colours.certainty(255, 10), 1);
  assert.equal(colours.certainty(0, 10), 0);
  near(colours.certainty(Math.round(255 * 0.55), 10), 0.5, 0.01);
  assert.notDeepEqual(colours.classColour(3), colours.classColour(4));
  for (let k = 0; k < 200; k += 1) {
    for (const part of colours.classColour(k)) assert.ok(part >= 0 && part <= 255);
  }
});

test("cells become fans, and every edge is drawn", () => {
  const layers = new Uint8Array([255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0]);
  const { fans, lines, id, paint } = expanded(cells, null, layers);
  assert.equal(fans.length, 4 * 3);
  assert.deepEqual([...id], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
  assert.deepEqual([...id], [...paint]);
  const edges = new Set();
  for (let k = 0; k < lines.length; k += 2) {
    const ends = [cells.corners[lines[k]], cells.corners[lines[k + 1]]].sort();
    edges.add(ends.join());
  }
  assert.equal(edges.size, 8);
});

test("a piece has its own colour and the number of its cell", () => {
  const pieces = {
    vertices: new Float32Array([0, 0, 1, 0, 1, 1]), first: geometry.offsets([3]),
    cells: new Uint32Array([2]),
  };
  const { id, paint, fans, fansOfCells } = expanded(cells, pieces, new Uint8Array(12));
  assert.deepEqual([...id.slice(12)], [2, 2, 2]);
  assert.deepEqual([...paint.slice(12)], [4, 4, 4]);
  assert.equal(fans.length - fansOfCells, 3);
});

test("the CSV has a row for each cell, in coordinates of the plane", () => {
  const arrays = { classes: [0, 1, 0, 1], confidence: [255, 0, 51, 255] };
  const text = copy.csvOf({ cells, arrays, facts: { unitArea: 2 }, names: ["a", 'b, "c"'] });
  const rows = text.trim().split("\n");
  assert.equal(rows.length, 5);
  assert.equal(rows[1].split(",").slice(3).join(), "2,3,a,1.000");
  assert.ok(rows[2].includes('"b, ""c"""'));
});

test("the SVG holds every cell", () => {
  const svg = copy.svgOf({
    cells, colours: new Uint8Array(16), window: { u: 2, v: 3, h: 1 }, aspect: 1, ink: [0, 0, 0],
    paper: [255, 255, 255],
  });
  assert.equal(svg.match(/<polygon/g).length, 4);
  assert.ok(svg.includes('points="0,1000 1000,1000 500,500"'));
});

test("ticks are round and inside", () => {
  assert.deepEqual(plot.ticks(0, 1, 4), [0, 0.5, 1]);
  for (const [low, high] of [[-3, 7], [1e-9, 2e-9], [5, 5.001]]) {
    for (const tick of plot.ticks(low, high)) assert.ok(tick >= low - 1e-12 && tick <= high + 1e-9);
  }
  const { paths, knots } = plot.plotted(new Float64Array([0, 0.5, 1]), new Float64Array([1, 2, 0]), 1);
  assert.equal(paths.length, 1);
  assert.equal(knots.length, 1);
});

test("colours of classes are those of the figures", () => {
  const known = JSON.parse(process.env.INSCAPE_COLOURS);
  known.forEach((colour, k) => assert.deepEqual(colours.classColour(k), colour));
});

test("steps are spread with both ends, and each comes once", () => {
  const steps = Array.from({ length: 41 }, (_, k) => 23 * k);
  assert.deepEqual(spaced(steps, 3), [0, 460, 920]);
  assert.equal(spaced(steps, 100), steps);
  const order = coarseFirst(steps);
  assert.deepEqual([...order].sort((a, b) => a - b), steps);
  assert.deepEqual(order.slice(0, 3), [0, 920, 32 * 23]);
  assert.deepEqual(coarseFirst([5]), [5]);
});

test("a frame is known by its plane, window and step alone", () => {
  const asked = { kind: "examples", rows: [1, 2, 3], seed: 0, centre: [0, 1], half: [2, 2], step: 5 };
  assert.equal(frameKey(asked), frameKey({ ...asked, network: "first", seconds: 3 }));
  assert.notEqual(frameKey(asked), frameKey({ ...asked, step: 6 }));
  assert.notEqual(frameKey(asked), frameKey({ ...asked, centre: [0, 1.5] }));
});

test("curves have gaps where values are missing, and a place leads back to its step", () => {
  const drawn = curves.drawnCurves([{ steps: [0, 10, 20, 30], values: [1, NaN, 2, 3] }], [0, 10, 20, 30]);
  assert.equal(drawn.paths[0].match(/M/g).length, 2);
  assert.equal(drawn.paths[0].match(/L/g).length, 1);
  assert.equal(curves.drawnCurves([{ steps: [0], values: [NaN] }], [0, 1]), null);
  for (const step of [0, 10, 20, 30]) {
    assert.equal(curves.stepAt(curves.placed(step, [0, 10, 20, 30]) + 3, [0, 10, 20, 30]), step);
  }
});

test("what Python has packed is unpacked", () => {
  const text = readFileSync(process.env.INSCAPE_PACKED, "utf8");
  const { facts, arrays } = unpacked(fromBase64(text));
  assert.deepEqual(facts, { cells: 3, text: "ä" });
  assert.deepEqual([...arrays.bytes], [1, 2, 3]);
  assert.deepEqual([...arrays.numbers], [0.5, -2]);
  assert.equal(arrays.places[1], 1e-300);
});
