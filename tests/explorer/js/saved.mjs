// A saved slice beside what the server answers (tests/explorer/test_saved_slice.py gives both).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const page = new URL("../../../src/inscape/explorer/static/", import.meta.url);
const { clippedCells, clippedLines, clippedPolygon, boxesOf } = await import(new URL("clip.js", page));
const { area, offsets, polygon } = await import(new URL("geometry.js", page));
const { SavedApi, openedData } = await import(new URL("saved.js", page));
const { pairText } = await import(new URL("views/pair.js", page));

const { saved, answers } = JSON.parse(readFileSync(process.env.INSCAPE_SAVED, "utf8"));
const api = new SavedApi(await openedData(saved));
const near = (a, b, off) => assert.ok(Math.abs(a - b) <= off, `${a} is not ${b}`);

test("windows of the file have the cells that the server cuts, with their classes and areas", async () => {
  for (const { asked, cells, areas, classes, boundary } of answers) {
    const { facts, arrays } = await api.post("cells", asked);
    assert.equal(facts.cells, cells);
    assert.ok(facts.complete);
    const shown = { ...arrays, first: offsets(arrays.counts) };
    const own = Array.from(arrays.counts, (_, i) => [area(polygon(shown, i)), arrays.classes[i]]).sort((a, b) => a[0] - b[0]);
    own.forEach(([size, number], k) => {
      near(size, areas[k], 1e-5);
      if (areas[k] > 1e-4) assert.ok(classes[k].includes(number));
    });
    near(facts.boundary, boundary, 1e-5 * (1 + boundary));
  }
});

test("a cell of the file has the map, the pattern and the error of the server's", async () => {
  const { asked, cell } = answers[0];
  const { facts } = await api.post("cells", asked);
  const { facts: known } = await api.post("cell", { view: facts.view, cell: cell.cell });
  assert.equal(known.answer.text, cell.answer.text);
  known.map.forEach((row, k) => {
    assert.equal(row.output, cell.map[k].output);
    near(row.value, cell.map[k].value, 1e-5);
    row.slopes.forEach((slope, j) => near(slope, cell.map[k].slopes[j], 1e-5));
  });
  assert.deepEqual(known.layers.map((layer) => [layer.pattern, layer.on]), cell.layers.map((layer) => [layer.pattern, layer.on]));
  near(known.area, cell.area, 1e-9);
  assert.ok(known.error < 1e-12);
});

test("a place has the answer and the scores of the network", async () => {
  const { at, point } = answers[0];
  const { facts } = await api.post("point", { at });
  assert.equal(facts.answer.text, point.answer.text);
  facts.scores.forEach(({ name, value }, k) => {
    assert.equal(name, point.scores[k].name);
    near(value, point.scores[k].value, 1e-5);
  });
  assert.deepEqual(facts.nearest.map((each) => each.row), point.nearest.map((each) => each.row));
  facts.nearest.forEach((each, k) => near(each.distance, point.nearest[k].distance, 1e-6));
});

test("what the file does not hold is said", async () => {
  await assert.rejects(api.post("segment", {}), /a running explorer does/);
  await assert.rejects(api.post("cell", { view: 10 ** 6, cell: 0 }), /forgotten/);
  const { facts } = await api.post("cells", { centre: [1e6, 0], half: [1, 1] });
  assert.equal(facts.cells, 0);
  assert.ok(!facts.complete);
});

test("colours and pictures of cells and examples are those of the file", async () => {
  const { asked } = answers[0];
  const { facts } = await api.post("cells", asked);
  for (const by of ["pattern", "map"]) {
    const { arrays } = await api.post("colours", { view: facts.view, by });
    assert.equal(arrays.rgb.length, 3 * facts.cells);
  }
  const { facts: examples } = await api.post("examples", { rows: [0, 10 ** 6] });
  assert.equal(examples.labels.length, 2);
});

test("clipping keeps areas, layers and what two cells share", () => {
  const square = [[-3, -3], [3, -3], [3, 3], [-3, 3]];
  const { places, layers } = clippedPolygon(square, [1, 2, 3, 4]);
  near(area(places), 4, 0);
  assert.deepEqual(layers, [255, 255, 255, 255]);
  const half = clippedPolygon([[0, -3], [3, -3], [3, 3], [0, 3]], [1, 2, 3, 7]);
  near(area(half.places), 2, 0);
  assert.equal(half.layers.filter((layer) => layer === 7).length, 1);
  assert.deepEqual(clippedPolygon([[2, 2], [3, 2], [3, 3]], [1, 1, 1]).places, []);
  const vertices = new Float64Array([0, 0, 1, 0.3, 1, 1, 0, 1, -1, 0.6]);
  const corners = new Uint32Array([0, 1, 2, 3, 0, 3, 4]);
  const first = offsets([4, 3]);
  const level = { centre: [0, 0], half: [1, 1] };
  const cells = { vertices, corners, first, layers: new Uint8Array(7), boxes: boxesOf(vertices, corners, first) };
  const cut = clippedCells(level, { centre: [0, 0.5], half: [0.2, 0.2] }, cells);
  assert.equal(cut.counts.length, 2);
  assert.equal(new Set(cut.corners).size, cut.vertices.length / 2);
  const shared = [...cut.corners.slice(0, cut.counts[0])].filter((v) => cut.corners.slice(cut.counts[0]).includes(v));
  assert.equal(shared.length, 2);
});

test("lines are cut at the sides of a window", () => {
  const level = { centre: [0, 0], half: [1, 1] };
  const points = new Float64Array([-1, 0, 1, 0, 1, 1]);
  const { points: kept, first } = clippedLines(level, { centre: [0, 0], half: [0.5, 0.5] }, points, new Uint32Array([0, 3]));
  assert.deepEqual([...kept], [-1, 0, 1, 0]);
  assert.deepEqual([...first], [0, 2]);
});

test("what two networks say is a sentence", () => {
  const facts = { complete: true, fraction: 0.25, area: 2, cells: 7, largest: 1.5, exact: true, covered: 1 };
  assert.match(pairText({ state: "exact", facts }), /7 cells of both. They disagree on 25.0% of the window \(area 2, exact\)/);
  assert.match(pairText({ state: "exact", facts: { ...facts, fraction: 0 } }), /disagree on nothing of the window;/);
});
