// A saved slice: answers from the data in the file what the page asks of a server elsewhere.

import { Refused } from "./api.js";
import { boxesOf, clippedCells, clippedLines } from "./clip.js";
import { area, cellAt, centroid, offsets, polygon } from "./geometry.js";
import { start } from "./main.js";
import { fromBase64, unpacked } from "./wire.js";

const NEAREST = 5;

/** Answers from a file. */
export class SavedApi {
  constructor({ facts, arrays }) {
    this.facts = facts;
    this.client = "saved";
    this.views = new Map();
    this.all = arrays;
    this.levels = facts.levels.map((level, k) => this.opened(level, this.named(`level${k}/`)));
  }

  as() {
    return this;
  }

  named(prefix) {
    const found = {};
    for (const [name, array] of Object.entries(this.all)) {
      if (name.startsWith(prefix)) found[name.slice(prefix.length)] = array;
    }
    return found;
  }

  opened(facts, arrays) {
    const first = offsets(arrays.counts);
    const cells = { vertices: arrays.vertices, corners: arrays.corners, first, layers: arrays.layers };
    const pieces = arrays.pieceCounts && {
      vertices: arrays.pieceVertices, corners: null, first: offsets(arrays.pieceCounts), layers: null,
    };
    for (const each of [cells, pieces]) {
      if (each) each.boxes = boxesOf(each.vertices, each.corners, each.first);
    }
    return { facts, arrays, cells, pieces, centre: facts.centre, half: facts.half };
  }

  async session() {
    return this.facts.session;
  }

  async post(name, asked) {
    const answers = {
      plane: () => this.plane(), raster: () => this.raster(asked), cells: () => this.window(asked),
      cell: () => this.cell(asked), colours: () => this.colours(asked),
      examples: () => this.examples(asked), point: () => this.point(asked),
    };
    if (!answers[name]) throw new Refused(404, "This file has no answer to that; a running explorer does.");
    return answers[name]();
  }

  plane() {
    return { facts: this.facts.plane, arrays: this.named("plane/") };
  }

  raster({ centre, half }) {
    const fits = this.facts.rasters.findIndex((known) => contains(known, { centre, half }));
    const k = fits < 0 ? this.facts.rasters.length - 1 : fits;
    return { facts: this.facts.rasters[k], arrays: this.named(`raster${k}/`) };
  }

  /** Return the level for a window: the finest that holds it, or else the last. */
  levelOf(window) {
    if (!this.levels.length) throw new Refused(400, this.facts.session.refusal);
    return this.levels.find((level) => contains(level, window)) ?? this.levels[this.levels.length - 1];
  }

  window({ centre, half }) {
    const level = this.levelOf({ centre, half });
    const to = { centre, half };
    const cut = clippedCells(level, to, level.cells);
    const { arrays, facts } = level;
    const chosen = (values, per = 1) => picked(values, cut.source, per);
    const found = {
      vertices: cut.vertices, corners: cut.corners, counts: cut.counts, layers: cut.layers,
      ...(arrays.classes && { classes: chosen(arrays.classes), confidence: chosen(arrays.confidence) }),
      ...(arrays.value && { value: chosen(arrays.value) }),
    };
    if (level.pieces) Object.assign(found, this.piecesOf(level, to, cut, found.classes));
    let length = null;
    if (arrays.boundary) {
      const line = clippedLines(level, to, arrays.boundary, arrays.boundaryFirst);
      [found.boundary, found.boundaryFirst] = [line.points, line.first];
      length = this.lengthOf(line, half);
    }
    const view = this.views.size + 1;
    this.views.set(view, { level, source: cut.source, cells: { ...cut, first: offsets(cut.counts) }, centre, half });
    const covered = coveredBy(cut);
    return {
      facts: {
        view, centre, half, cells: cut.counts.length, merged: cut.counts.length,
        complete: covered > 1 - 1e-6, covered, unresolved: facts.unresolved, boundary: length,
        unitArea: (facts.unitArea * half[0] * half[1]) / (level.half[0] * level.half[1]),
      },
      arrays: found,
    };
  }

  piecesOf(level, to, cut, classes) {
    const pieces = clippedCells(level, to, level.pieces);
    const places = new Map(Array.from(cut.source, (source, k) => [source, k]));
    const kept = [];
    pieces.source.forEach((source, k) => places.has(level.arrays.pieceCells[source]) && kept.push(k));
    const first = offsets(pieces.counts);
    const vertices = [];
    const shown = { ...cut, first: offsets(cut.counts) };
    for (const k of kept) {
      const own = places.get(level.arrays.pieceCells[pieces.source[k]]);
      const piece = { ...pieces, corners: pieces.corners.subarray(first[k], first[k + 1]), first: [0, pieces.counts[k]] };
      // the answer of a clipped cell is that in the middle of what is left of it
      if (cellAt(piece, ...centroid(polygon(shown, own))) === 0) {
        classes[own] = level.arrays.pieceClasses[pieces.source[k]];
      }
      for (let c = first[k]; c < first[k + 1]; c += 1) {
        const vertex = pieces.corners[c];
        vertices.push(pieces.vertices[2 * vertex], pieces.vertices[2 * vertex + 1]);
      }
    }
    return {
      pieceVertices: new Float32Array(vertices),
      pieceCounts: Uint16Array.from(kept, (k) => pieces.counts[k]),
      pieceClasses: Uint16Array.from(kept, (k) => level.arrays.pieceClasses[pieces.source[k]]),
      pieceCells: Uint32Array.from(kept, (k) => places.get(level.arrays.pieceCells[pieces.source[k]])),
    };
  }

  /** Return the length of lines in the input space, by the lengths of the plane's axes. */
  lengthOf({ points }, half) {
    let sum = 0;
    for (let k = 0; k < points.length; k += 4) {
      sum += this.distance((points[k + 2] - points[k]) * half[0], (points[k + 3] - points[k + 1]) * half[1]);
    }
    return sum;
  }

  distance(du, dv) {
    const [a, b, , d] = this.facts.plane.gram;
    return Math.sqrt(Math.max(0, a * du * du + 2 * b * du * dv + d * dv * dv));
  }

  viewOf(number) {
    const view = this.views.get(number);
    if (!view) throw new Refused(410, "this window is forgotten by now: move it a little.");
    return view;
  }

  colours({ view, by }) {
    const { level, source } = this.viewOf(view);
    return { facts: { view }, arrays: { rgb: picked(level.arrays[by], source, 3) } };
  }

  cell({ view, cell }) {
    const { level, source } = this.viewOf(view);
    const i = source[cell];
    const { facts } = level;
    const places = polygon(level.cells, i);
    return { facts: {
      cell, region: i, area: area(places) * facts.unitArea, corners: places.length,
      error: level.arrays.errors[i], precision: "float64", samples: `up to ${facts.errorPlaces}`,
      map: this.mapOf(level, i), layers: this.layersOf(level, i), answer: this.answerOf(level, i),
    }, arrays: {} };
  }

  mapOf({ arrays, facts }, i) {
    const count = arrays.mapOutputs.length / facts.cells;
    return Array.from({ length: count }, (_, k) => {
      const at = i * count + k;
      const output = arrays.mapOutputs[at];
      return {
        output: this.outputName(output), number: output, value: arrays.mapValues[at],
        slopes: [arrays.mapSlopes[2 * at], arrays.mapSlopes[2 * at + 1]],
      };
    });
  }

  outputName(output) {
    const { classes, competing } = this.facts.session;
    return competing && classes.length > output ? classes[output] : `output ${output}`;
  }

  layersOf({ arrays, facts }, i) {
    if (!arrays.states) return null;
    const shown = facts.layerUnits.map((units) => Math.min(64, units));
    const width = shown.reduce((a, b) => a + b, 0);
    let from = i * width;
    return facts.operations.map((name, op) => {
      const states = arrays.states.subarray(from, from + shown[op]);
      from += shown[op];
      return {
        name, on: arrays.on[i * shown.length + op], units: facts.layerUnits[op],
        states: facts.layerStates[op],
        pattern: Array.from(states, (state) => Math.min(9, state)).join("") + (facts.layerUnits[op] > 64 ? "…" : ""),
      };
    });
  }

  answerOf({ arrays }, i) {
    if (!arrays.classes) return { text: String(+arrays.value[i].toPrecision(4)) };
    return { class: arrays.classes[i], text: this.facts.session.classes[arrays.classes[i]], confidence: arrays.confidence[i] / 255 };
  }

  /** Return what the maps of the file say at a place; gradients of the input are not in it. */
  point({ at }) {
    const level = this.levelOf({ centre: at, half: [0, 0] });
    const x = (at[0] - level.centre[0]) / level.half[0];
    const y = (at[1] - level.centre[1]) / level.half[1];
    const i = cellAt(level.cells, x, y);
    if (i < 0) throw new Refused(400, "This place is outside of the windows that this file holds.");
    const [cx, cy] = centroid(polygon(level.cells, i));
    const [du, dv] = [(x - cx) * level.half[0], (y - cy) * level.half[1]];
    const scores = this.mapOf(level, i).map((row) => ({
      name: row.output, number: row.number, value: row.value + row.slopes[0] * du + row.slopes[1] * dv,
    })).sort((a, b) => b.value - a.value);
    const best = scores[0];
    const text = level.arrays.classes && scores.length > 1 ? best.name : this.answerOf(level, i).text;
    return { facts: { u: at[0], v: at[1], answer: { text }, scores, nearest: this.nearest(at) }, arrays: {} };
  }

  nearest([u, v]) {
    const { u: us, v: vs, away, row, label } = this.named("plane/");
    const { classes } = this.facts.session;
    return Array.from(us, (_, k) => ({
      row: row[k], label: label[k] === 65535 ? "" : classes[label[k]] ?? "",
      distance: Math.hypot(this.distance(us[k] - u, vs[k] - v), away[k]),
    })).sort((a, b) => a.distance - b.distance).slice(0, NEAREST);
  }

  examples({ rows, train }) {
    const { rows: known, labels, shape } = this.facts.examples;
    const size = shape ? shape.reduce((a, b) => a * b, 1) : 0;
    const pixels = new Uint8Array(size * rows.length);
    const found = rows.map((row) => (train ? -1 : known.indexOf(row)));
    found.forEach((place, k) => {
      if (place >= 0 && size) pixels.set(this.all["examples/pixels"].subarray(place * size, (place + 1) * size), k * size);
    });
    return {
      facts: { rows, labels: found.map((place) => labels[place] ?? ""), shape }, arrays: { pixels },
    };
  }
}

/** Tell whether one window holds another. */
function contains(known, { centre, half }) {
  return [0, 1].every((k) => Math.abs(centre[k] - known.centre[k]) + half[k] <= known.half[k] * (1 + 1e-9));
}

/** Return the entries of some cells, so many for each. */
function picked(values, source, per) {
  const found = new values.constructor(source.length * per);
  source.forEach((i, k) => {
    for (let c = 0; c < per; c += 1) found[per * k + c] = values[per * i + c];
  });
  return found;
}

/** Return the fraction of a window that polygons cover. */
function coveredBy(cut) {
  const cells = { ...cut, first: offsets(cut.counts) };
  let sum = 0;
  for (let i = 0; i < cut.counts.length; i += 1) sum += area(polygon(cells, i));
  return Math.min(1, sum / 4);
}

/** Open the data of a file. */
export async function openedData(text) {
  const packed = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpacked(await new Response(packed).arrayBuffer());
}

async function main() {
  const root = document.getElementById("page");
  try {
    const api = new SavedApi(await openedData(document.getElementById("saved").textContent));
    if (api.facts.start && !location.hash) history.replaceState(null, "", `#${api.facts.start}`);
    root.replaceChildren();
    start(root, api, await api.session());
  } catch (error) {
    root.textContent = `This file cannot be opened: ${error.message}`;
  }
}

if (typeof document !== "undefined" && document.getElementById("saved")) main();
