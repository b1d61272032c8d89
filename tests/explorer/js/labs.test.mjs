// The pure functions of the labs, run by node's own test runner (tests/explorer/test_page_functions.py).
import assert from "node:assert/strict";
import { test } from "node:test";

const page = new URL("../../../src/inscape/explorer/static/", import.meta.url);
const module = (name) => import(new URL(name, page));
const toy = await module("toy_setup.js");
const pictures = await module("boolean_pictures.js");
const copies = await module("lab_copies.js");
const { traceOf } = await module("trace.js");

const START = { data: "circle", hidden: [8], lr: 0.01, n: 200, normalise: false, rows: [], scale: 1 };

test("changes come back from their text, and nothing else does", () => {
  const changes = { data: "own", hidden: [3, 12], lr: 1e-7, normalise: true };
  assert.deepEqual(toy.changesOf(toy.changesText(changes), START), changes);
  assert.deepEqual(toy.changesOf(toy.changesText({ hidden: [] }), START), { hidden: [] });
  assert.equal(toy.changesText({}), "");
  assert.deepEqual(toy.changesOf("lr:x;hidden:3-a;more:1;rows:1;:2;n:;__proto__:1", START), {});
});

test("a setting that is back at the preset's is no change", () => {
  const base = { ...START, lr: 0.5 };
  const one = toy.changed({}, "lr", 0.1, base);
  assert.deepEqual(one, { lr: 0.1 });
  assert.deepEqual(toy.changed(one, "lr", 0.5, base), {});
  assert.deepEqual(toy.changed({ hidden: [3] }, "hidden", [8], base), {});
});

test("a setup is the start, then the preset, then the changes", () => {
  const preset = { setup: { lr: 0.5, hidden: [2] } };
  const rows = [[0, 0, 1]];
  assert.deepEqual(toy.setupOf(START, preset, { hidden: [4] }, rows), { ...START, lr: 0.5, hidden: [4] });
  assert.deepEqual(toy.setupOf(START, preset, { data: "own" }, rows).rows, rows);
});

test("points come back from their flat list", () => {
  const rows = [[0.25, -1, 0], [1e-3, 2, 3]];
  assert.deepEqual(toy.rowsOf(toy.flatOf(rows)), rows);
  assert.deepEqual(toy.rowsOf([1, 2]), []);
  assert.deepEqual(toy.withoutNearest(rows, [0, 1.9]), [rows[0]]);
  assert.deepEqual(toy.withoutNearest([], [0, 0]), []);
});

test("widths are read in any usual writing, within bounds", () => {
  for (const text of ["8-8-3", "8, 8, 3", "8x8x3", " 8 8 3 "]) assert.deepEqual(toy.widthsOf(text), [8, 8, 3]);
  assert.deepEqual(toy.widthsOf(""), []);
  for (const text of ["0", "257", "a", "1.5", "1-1-1-1-1-1-1"]) assert.equal(toy.widthsOf(text), null);
});

test("a CSV has classes by name, or numbers, or says what is wrong", () => {
  const read = toy.readCsv("x,y,label\n0,1,b\n2,3,a\r\n\n4,5,b\n");
  assert.deepEqual(read, { rows: [[0, 1, 1], [2, 3, 0], [4, 5, 1]], labels: "classes", names: ["a", "b"] });
  assert.deepEqual(toy.readCsv("1;2;10\n3;4;9").rows, [[1, 2, 1], [3, 4, 0]]); // by number, not by letter
  const many = Array.from({ length: 9 }, (_, k) => `${k},0,${k / 2}`).join("\n");
  assert.equal(toy.readCsv(many).labels, "numbers");
  assert.match(toy.readCsv("1,2\n3,4").error, /two numbers and a label, found "1,2"/);
  assert.match(toy.readCsv("1,2,a").error, /2 to 1000 rows, found 1/);
  assert.match(toy.readCsv(many.replace(/,[\d.]+$/gm, (label) => `,n${label.slice(1)}`)).error, /found 9 names/);
});

test("the Python of a setup names what is not at its default", () => {
  const text = toy.pythonOfToy({ ...START, hidden: [3], normalise: true, rows: [[0, 1, 2]] }, START, 40);
  for (const line of ["updates=40,", "hidden=(3,),", "normalise=True,", "rows=((0, 1, 2),),"]) {
    assert.ok(text.includes(line), line);
  }
  assert.ok(!text.includes("lr="));
});

test("the history is a table of every measure", () => {
  const text = toy.historyCsv([
    { step: 0, loss: null, measures: { a: 1 } }, { step: 5, loss: 0.5, measures: { b: 2 } },
  ]);
  assert.equal(text, "update,loss,a,b\n0,,1,\n5,0.5,,2\n");
});

test("a trace lies within its picture and skips what is no number", () => {
  const trace = traceOf([0, 10, 20], [NaN, 1, 3]);
  assert.equal(trace.path.split("L").length, 2);
  for (const part of trace.path.slice(1).split("L")) {
    const [x, y] = part.split(",").map(Number);
    assert.ok(x >= 0 && x <= trace.width && y >= 0 && y <= trace.height);
  }
  assert.equal(traceOf([0], [1]), null);
});

test("a table is turned at one place or everywhere", () => {
  assert.equal(pictures.flipped("0110", 0), "1110");
  assert.equal(pictures.flipped("0110"), "1001");
});

test("a new input changes nothing, and taking it away gives the table back", () => {
  assert.equal(pictures.resized("0110", 3), "00111100");
  assert.equal(pictures.resized(pictures.resized("0110", 5), 2), "0110");
});

test("bars go from zero to their coefficient", () => {
  const spectrum = [{ set: "1", size: 0, coefficient: 0.5 }, { set: "x1", size: 1, coefficient: -0.5 }];
  const { bars, zero } = pictures.barsOf(spectrum);
  assert.ok(Math.abs(bars[0].y + bars[0].height - zero) < 1e-9);
  assert.ok(Math.abs(bars[1].y - zero) < 1e-9);
  assert.ok(pictures.barsOf([{ set: "1", size: 0, coefficient: 1 }]).bars[0].height > 0);
});

test("a network is drawn without its zero weights", () => {
  const plot = pictures.netOf({
    sizes: [2, 1, 1], layers: [{ weights: [[1, 0]], bias: [0.5] }, { weights: [[-2]], bias: [0] }],
  });
  assert.equal(plot.edges.length, 2);
  assert.deepEqual(plot.nodes.map((node) => node.text), ["x1", "x2", "0.5", "0"]);
  assert.deepEqual(pictures.sizesOf(2, 2), [[1, 1], [2, 1], [3, 1], [5, 1], [2, 2], [3, 2], [4, 2]]);
});

test("a truth table is given away with the coefficient of every set", () => {
  const spectrum = [
    { set: "1", coefficient: 0.5 }, { set: "x2", coefficient: 0 }, { set: "x1", coefficient: -0.25 },
    { set: "x1 x2", coefficient: 1 },
  ];
  const text = copies.tableCsvOf({ n: 2, bits: "0110", spectrum });
  assert.equal(text, "x1,x2,value,coefficient\n0,0,0,0.5\n0,1,1,0\n1,0,1,-0.25\n1,1,0,1\n");
});

test("tables and claims of a paper are one CSV", () => {
  const cell = { ours: "0.1", interval: "0 to 0.2", published: "0.1", verdict: "reproduced" };
  const tables = [{ title: "a, b", columns: ["c", "d"], rows: [{ name: "r", cells: [cell, null] }, { name: "s", cells: [null, { given: "7" }] }] }];
  const claims = [{ says: "it \"holds\"", verdict: "reproduced", ours: "1", interval: "" }];
  assert.deepEqual(copies.tablesCsvOf({ tables, claims, values: [] }).split("\n"), [
    "table,row,column,ours,interval,paper,verdict",
    '"a, b",r,c,0.1,0 to 0.2,0.1,reproduced',
    '"a, b",s,d,7,,,',
    'claim,"it ""holds""",,1,,,reproduced',
    "",
  ]);
});

test("the Python of labs and papers names what is shown", () => {
  assert.match(copies.booleanPythonOf({ bits: "0110", weights: [2, 1] }), /from_bits\(\[0, 1, 1, 0\]\)[^]*\[2, 1\]/);
  assert.match(copies.paperPythonOf("klindt/table-1"), /"klindt\/table-1"[^]*klindt-table-1\.pdf/);
});
