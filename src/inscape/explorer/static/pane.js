// A pane: one network in one window of a plane. It shows the raster at once and the exact regions
// as soon as they are there, and redraws what it has while the window moves.

import { INK, LAYERS, PAPER, classColour, css, painted, pairColours, themeOf } from "./colours.js";
import { CanvasRenderer } from "./fallback.js";
import { distanceToLines, offsets, polygon } from "./geometry.js";
import { Renderer } from "./renderer.js";
import { covers, halves, offsetOf, panned, pixelOf, placeOf, rebasing, zoomed } from "./window.js";

const SETTLED = 90; // milliseconds without a move before the server is asked
const RASTER = 200; // pixels of a raster along the longer side
const SECONDS = [0.25, 2, 8]; // for ever finer rasters where there are no exact regions
const COARSE = { regions: 6000, seconds: 4 }; // of the exact regions that are shown first
const MOST = 300000; // exact regions of a window, at most
const STEP = 0.12; // of the window, for one press of an arrow
const FACTOR = 1.35; // of one press of + or -

/** One network in a window. */
export class Pane {
  /** `isPair` tells that the regions are those of two networks together. */
  constructor(root, { api, session, listeners, isPair = false }) {
    this.api = api;
    this.session = session;
    this.listeners = listeners;
    this.root = root;
    this.isPair = isPair;
    this.canvas = document.createElement("canvas");
    this.overlay = document.createElement("canvas");
    this.canvas.className = "cells";
    this.overlay.className = "overlay";
    this.overlay.tabIndex = 0;
    this.overlay.setAttribute("role", "img");
    root.replaceChildren(this.canvas, this.overlay);
    this.renderer = Renderer.on(this.canvas) ?? new CanvasRenderer(this.canvas);
    this.renderer.onRestored = () => this.restore();
    this.settings = { colour: "class", edges: "plain", points: true };
    this.seen = { network: "first", step: -1 };
    this.cut = null;
    this.hovered = -1;
    this.listen();
    this.resizing = new ResizeObserver(() => this.moved());
    this.resizing.observe(root);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", () => this.recolour());
  }

  get size() {
    return { width: this.root.clientWidth || 1, height: this.root.clientHeight || 1 };
  }

  /** Show another plane: what was drawn of the last one is forgotten. */
  setPlane(plane, asked) {
    this.forget();
    this.plane = plane;
    this.asked = asked;
  }

  /** Forget the plane and whatever was drawn of it. */
  forget() {
    this.stop?.abort();
    clearTimeout(this.timer);
    this.plane = null;
    this.cut = null;
    this.raster = null;
    this.unhover();
    this.renderer.forget();
  }

  /** Show nothing: there is no such plane. */
  clear() {
    this.forget();
    this.drawCells({ u: 0, v: 0, h: 1 });
    this.overlay.width = 1;
  }

  /** Answer no more about what is drawn: another plane is on its way. */
  fade() {
    this.isStale = true;
    this.unhover();
  }

  /** Show another network of the same plane; its regions replace the old ones once they are there. */
  setNetwork(seen) {
    if (JSON.stringify(seen) === JSON.stringify(this.seen)) return;
    this.seen = seen;
    this.isStale = true;
    this.load();
  }

  setWindow(window) {
    this.window = window;
    this.moved();
  }

  set(settings) {
    const before = this.settings;
    this.settings = { ...before, ...settings };
    if (this.settings.colour !== before.colour) this.recolour();
    this.draw();
  }

  /** The window has moved: draw what is there, and ask for the rest once it rests. */
  moved() {
    if (!this.window || !this.plane) return;
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), SETTLED);
  }

  async load(isAnew = false) {
    if (!this.window || !this.plane) return;
    clearTimeout(this.timer);
    this.stop?.abort();
    const stop = new AbortController();
    this.stop = stop;
    const { window, size } = this;
    const asked = {
      ...this.asked, ...this.seen, centre: [window.u, window.v], half: halves(window, size),
    };
    const frame = isAnew ? null : this.listeners.frame?.(asked);
    if (frame) {
      this.take(frame.facts, frame.arrays, frame.rgb);
      this.isNew = false; // the next frame follows at once
      return;
    }
    this.tell({ state: "computing" });
    try {
      const known = this.cut && !this.isStale && covers(this.cut, window, size);
      const raster = known ? null : this.loadRaster(asked, SECONDS[0], stop.signal);
      raster?.catch(() => {}); // it is awaited below, unless the regions are stopped before
      if (this.session.exact) await this.loadCells(asked, stop.signal);
      await raster;
      if (!this.session.exact) {
        for (const seconds of SECONDS.slice(1)) {
          this.tell({ state: "raster", raster: this.raster });
          if (!this.raster || this.raster.width >= size.width) break;
          await this.loadRaster(asked, seconds, stop.signal);
        }
        this.tell({ state: "raster", raster: this.raster });
      }
    } catch (error) {
      if (error.name === "AbortError" || error.status === 409) return;
      this.tell({ state: "refused", text: error.message });
    }
  }

  /** Ask about the cut that is shown; it is cut anew where the server has forgotten it. */
  async askAbout(name, asked, signal) {
    try {
      return await this.api.post(name, { ...asked, view: this.cut.facts.view }, signal);
    } catch (error) {
      if (error.status !== 410) throw error;
      this.isStale = true;
      await this.load(true);
      if (this.isStale) throw error;
      return this.api.post(name, { ...asked, view: this.cut.facts.view }, signal);
    }
  }

  async loadRaster(asked, seconds, signal) {
    const { width, height } = this.size;
    const fine = seconds > 1 ? 2 : 1;
    const scale = Math.min(1, (fine * RASTER) / Math.max(width, height));
    const { facts, arrays } = await this.api.post(this.isPair ? "pair/raster" : "raster", {
      ...asked, width: Math.max(1, Math.round(width * scale)),
      height: Math.max(1, Math.round(height * scale)), seconds,
    }, signal);
    if (signal.aborted || (this.cut && !this.isStale && covers(this.cut, this.window, this.size))) {
      return;
    }
    this.raster = { ...facts, arrays };
    this.paintRaster();
    this.draw();
  }

  async loadCells(asked, signal) {
    const listening = setTimeout(() => {
      this.api.progress?.(this.api.client, (event) => {
        if (!signal.aborted && !event.finished) this.tell({ state: "computing", ...event });
      }, signal).catch(() => {});
    }, 400);
    const name = this.isPair ? "pair/cells" : "cells";
    try {
      const { facts, arrays } = await this.api.post(name, { ...asked, ...COARSE }, signal);
      if (signal.aborted) return;
      this.take(facts, arrays);
      if (facts.complete || this.session.offline) return;
      this.tell({ state: "more", facts });
      try {
        const all = await this.api.post(name, { ...asked, side: sideOf(facts) }, signal);
        if (!signal.aborted) this.take(all.facts, all.arrays);
      } catch (error) {
        if (error.status !== 503) throw error;
        this.tell({ state: "exact", facts }); // no time for more than is shown already
      }
    } finally {
      clearTimeout(listening);
    }
  }

  /** Show what was sent without being asked for: an exact cut, or a raster of its window. */
  show(facts, arrays) {
    this.stop?.abort();
    clearTimeout(this.timer);
    this.renderer.forget();
    this.raster = null;
    if (arrays.corners) {
      this.take(facts, arrays);
      return;
    }
    this.cut = null;
    this.raster = { ...facts, arrays };
    this.paintRaster();
    this.draw();
    this.tell({ state: "raster", raster: this.raster });
  }

  /** Take an exact cut and show it. */
  take(facts, arrays, rgb = null) {
    const cells = {
      centre: facts.centre, half: facts.half, vertices: arrays.vertices, corners: arrays.corners,
      first: offsets(arrays.counts),
    };
    const pieces = arrays.pieceCounts && {
      vertices: arrays.pieceVertices, first: offsets(arrays.pieceCounts),
      classes: arrays.pieceClasses, cells: arrays.pieceCells,
    };
    const boundary = arrays.boundary && {
      points: arrays.boundary, first: arrays.boundaryFirst,
    };
    this.cut = { ...cells, cells, pieces, boundary, facts, arrays, rgb };
    this.isStale = false;
    this.unhover(); // numbers of regions are those of another cut
    this.isNew = true;
    this.renderer.setCells(cells, pieces, arrays.layers);
    this.paintCells();
    this.draw();
    this.tell({ state: "exact", facts });
    this.listeners.onCut?.(this);
  }

  restore() {
    if (this.cut) {
      const { cells, pieces, arrays } = this.cut;
      this.renderer.setCells(cells, pieces, arrays.layers);
    }
    this.recolour();
  }

  recolour() {
    this.paintRaster();
    this.paintCells();
    this.draw();
  }

  paintRaster() {
    if (!this.raster) return;
    const { arrays, width, height } = this.raster;
    const classes = this.session.classes.length;
    const { colour } = this.settings;
    const rgba = this.isPair ? pairColours(arrays, colour, themeOf())
      : painted(arrays, colour, classes, themeOf(), width * height);
    this.renderer.setPicture(rgba, this.raster);
  }

  /** Colour the cells; patterns and maps are coloured by the server, as its figures are. */
  paintCells() {
    const { cut } = this;
    if (!cut) return;
    const { colour } = this.settings;
    this.colours = this.isPair ? pairColours(cut.arrays, colour, themeOf()) : this.classColours(cut);
    this.renderer.setColours(this.colours);
    this.byOwner = colour === "confidence" || this.isPair;
    if (colour !== "pattern" && colour !== "map") return;
    this.byOwner = true;
    const known = cut.rgb?.[colour];
    if (known) {
      this.takeColours(cut, known);
      return;
    }
    this.askAbout("colours", { by: colour }).then(({ arrays }) => {
      cut.rgb = { ...cut.rgb, [colour]: arrays.rgb };
      if (this.cut === cut && this.settings.colour === colour) {
        this.takeColours(cut, arrays.rgb);
        this.draw();
      }
    }).catch((error) => {
      if (error.status !== 409) this.tell({ state: "refused", text: error.message });
    });
  }

  classColours({ arrays, cells, pieces }) {
    const count = cells.first.length - 1;
    const classes = this.session.classes.length;
    const own = painted(arrays, this.settings.colour, classes, themeOf(), count);
    if (!pieces || !arrays.classes) return own;
    const more = painted(
      { classes: pieces.classes }, "class", classes, themeOf(), pieces.classes.length,
    );
    const rgba = new Uint8Array(own.length + more.length);
    rgba.set(own);
    rgba.set(more, own.length);
    return rgba;
  }

  takeColours(cut, rgb) {
    const count = cut.cells.first.length - 1;
    const rgba = new Uint8Array(4 * count).fill(255);
    for (let i = 0; i < count; i += 1) rgba.set(rgb.subarray(3 * i, 3 * i + 3), 4 * i);
    this.colours = rgba;
    this.renderer.setColours(rgba);
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.drawNow();
    });
  }

  drawNow() {
    if (!this.window || !this.plane) return;
    const start = performance.now();
    this.drawCells(this.window);
    this.drawOverlay(themeOf());
    this.frameTime = performance.now() - start;
    if (this.isNew && this.cut && this.at) this.hover(...this.at);
    this.isNew = false;
  }

  drawCells(window) {
    const theme = themeOf();
    this.renderer.draw(window, this.size, {
      paper: PAPER[theme], ink: INK[theme], edges: this.settings.edges,
      byOwner: Boolean(this.byOwner), palette: LAYERS,
    });
  }

  drawOverlay(theme) {
    const { overlay, size, window } = this;
    const ratio = Math.min(2, devicePixelRatio || 1);
    overlay.width = Math.round(size.width * ratio);
    overlay.height = Math.round(size.height * ratio);
    const context = overlay.getContext("2d");
    context.scale(ratio, ratio);
    const ink = css(INK[theme]);
    const paper = css(PAPER[theme]);
    context.lineJoin = "round";
    if (this.cut?.boundary) this.drawBoundary(context, ink);
    if (this.cut && this.isPair) {
      this.drawEdges(context, this.cut.arrays.firstBoundary, ink, []);
      this.drawEdges(context, this.cut.arrays.otherBoundary, ink, [5, 4]);
    }
    if (this.hovered >= 0 && this.cut) this.drawHovered(context, ink, paper);
    if (this.settings.points) this.drawPoints(context, ink);
    this.drawLine(context, ink, paper);
    this.drawAnchors(context, ink, paper);
    if (this.cursor) this.drawCursor(context, ink, paper);
    if (this.listeners.at?.()) {
      const [x, y] = pixelOf(window, size, ...this.listeners.at());
      ring(context, x, y, 7, paper, 4);
      ring(context, x, y, 7, ink, 2);
    }
  }

  placed() {
    const { scale, shift } = rebasing(this.cut, this.window, this.size);
    const { width, height } = this.size;
    return (x, y) => [
      ((x * scale[0] + shift[0] + 1) / 2) * width,
      ((1 - (y * scale[1] + shift[1])) / 2) * height,
    ];
  }

  drawBoundary(context, ink) {
    const at = this.placed();
    const { points, first } = this.cut.boundary;
    context.strokeStyle = ink;
    context.lineWidth = 2.2;
    context.beginPath();
    for (let line = 0; line + 1 < first.length; line += 1) {
      for (let k = first[line]; k < first[line + 1]; k += 1) {
        const [x, y] = at(points[2 * k], points[2 * k + 1]);
        if (k === first[line]) context.moveTo(x, y);
        else context.lineTo(x, y);
      }
    }
    context.stroke();
  }

  /** Draw edges of cells, given by the numbers of their two vertices. */
  drawEdges(context, ends, ink, dash) {
    const at = this.placed();
    const { vertices } = this.cut;
    context.strokeStyle = ink;
    context.lineWidth = 2.2;
    context.setLineDash(dash);
    context.beginPath();
    for (let k = 0; k < ends.length; k += 2) {
      context.moveTo(...at(vertices[2 * ends[k]], vertices[2 * ends[k] + 1]));
      context.lineTo(...at(vertices[2 * ends[k + 1]], vertices[2 * ends[k + 1] + 1]));
    }
    context.stroke();
    context.setLineDash([]);
  }

  /** Draw the place that the pointer has in another pane of the same window. */
  drawCursor(context, ink, paper) {
    const [x, y] = pixelOf(this.window, this.size, ...this.cursor);
    for (const [colour, width] of [[paper, 4], [ink, 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x - 9, y);
      context.lineTo(x + 9, y);
      context.moveTo(x, y - 9);
      context.lineTo(x, y + 9);
      context.stroke();
    }
  }

  drawHovered(context, ink, paper) {
    const at = this.placed();
    context.beginPath();
    polygon(this.cut.cells, this.hovered).forEach(([x, y], k) => {
      const place = at(x, y);
      if (k) context.lineTo(...place);
      else context.moveTo(...place);
    });
    context.closePath();
    context.strokeStyle = paper;
    context.lineWidth = 4;
    context.stroke();
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.stroke();
  }

  /** Data points: the farther one is from the plane, the fainter. */
  drawPoints(context, ink) {
    for (const point of this.pointsInView()) {
      context.globalAlpha = point.strength;
      context.beginPath();
      context.arc(point.x, point.y, 3.5, 0, 2 * Math.PI);
      context.fillStyle = css(point.colour);
      context.fill();
      context.strokeStyle = ink;
      context.lineWidth = 1;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Return the classes that are seen, in cells and in the raster around them. */
  classesInView() {
    const sources = [this.cut?.arrays, this.raster?.arrays];
    if (this.cut?.facts.complete) sources.pop();
    const seen = new Set();
    for (const arrays of sources) {
      for (const name of ["classes", "pieceClasses"]) for (const k of arrays?.[name] ?? []) seen.add(k);
    }
    return [...seen].sort((a, b) => a - b).filter((k) => k < this.session.classes.length);
  }

  /** Return the examples in the window: where, how far from the plane, and of which class. */
  pointsInView() {
    const { plane, window, size } = this;
    const { u, v, away, row, label } = plane.arrays;
    const far = Math.max(1e-300, plane.facts.half[1] * 1.5);
    const points = [];
    for (let i = 0; i < u.length; i += 1) {
      const [x, y] = pixelOf(window, size, u[i], v[i]);
      if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
      const strength = Math.max(0.12, 1 - away[i] / far);
      const colour = label[i] === 65535 ? [127, 127, 127] : classColour(label[i]);
      points.push({ x, y, away: away[i], row: row[i], label: label[i], strength, colour });
    }
    return points;
  }

  drawLine(context, ink, paper) {
    const line = this.listeners.line?.();
    if (!line) return;
    const ends = [];
    for (let k = 0; k + 1 < line.length; k += 2) {
      ends.push(pixelOf(this.window, this.size, line[k], line[k + 1]));
    }
    for (const [colour, width] of [[paper, 5], [ink, 2]]) {
      context.strokeStyle = colour;
      context.fillStyle = ink;
      context.lineWidth = width;
      if (ends.length === 2) {
        context.beginPath();
        context.moveTo(...ends[0]);
        context.lineTo(...ends[1]);
        context.stroke();
      }
      for (const [x, y] of ends) ring(context, x, y, 5, colour, width);
    }
  }

  drawAnchors(context, ink, paper) {
    const { found } = this.plane.facts;
    if (found) {
      const [x, y] = pixelOf(this.window, this.size, ...found);
      context.beginPath();
      [[0, -9], [9, 0], [0, 9], [-9, 0]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
      context.closePath();
      context.fillStyle = ink;
      context.strokeStyle = paper;
      context.lineWidth = 2;
      context.stroke();
      context.fill();
    }
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.plane.facts.anchors.forEach((anchor, k) => {
      const [x, y] = pixelOf(this.window, this.size, anchor.u, anchor.v);
      context.beginPath();
      context.arc(x, y, 10, 0, 2 * Math.PI);
      context.fillStyle = ink;
      context.fill();
      context.fillStyle = paper;
      context.fillText("ABC"[k], x, y + 1);
    });
  }

  // ----- pointer and keyboard

  listen() {
    const { overlay } = this;
    overlay.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, y] = local(event);
      this.zoom(x, y, Math.exp(Math.sign(event.deltaY) * Math.min(0.3, Math.abs(event.deltaY) / 300)));
    }, { passive: false });
    const pointers = new Map();
    let travelled = 0;
    overlay.addEventListener("pointerdown", (event) => {
      overlay.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, local(event));
      if (pointers.size === 1) travelled = 0;
    });
    overlay.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      const at = local(event);
      this.at = at;
      if (!before) {
        this.hover(...at);
        return;
      }
      if (!this.window || !this.plane) return;
      const [dx, dy] = [at[0] - before[0], at[1] - before[1]];
      travelled += Math.hypot(dx, dy);
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const was = Math.hypot(before[0] - other[0], before[1] - other[1]);
        const is = Math.hypot(at[0] - other[0], at[1] - other[1]);
        if (is > 0) this.zoom((at[0] + other[0]) / 2, (at[1] + other[1]) / 2, was / is);
      } else if (travelled > 4) {
        this.listeners.onWindow(panned(this.window, this.size, dx, dy));
      }
      pointers.set(event.pointerId, at);
    });
    const up = (event) => {
      const was = pointers.delete(event.pointerId);
      if (was && travelled <= 4 && event.type === "pointerup" && this.window) {
        this.listeners.onClick?.(placeOf(this.window, this.size, ...local(event)), event.shiftKey, this);
      }
    };
    overlay.addEventListener("pointerup", up);
    overlay.addEventListener("pointercancel", up);
    overlay.addEventListener("pointerleave", () => {
      this.at = null;
      this.unhover();
    });
    overlay.addEventListener("dblclick", (event) => this.zoom(...local(event), 1 / 2));
    overlay.addEventListener("keydown", (event) => this.key(event));
  }

  zoom(x, y, factor) {
    if (!this.window || !this.plane) return;
    const first = this.plane.facts.half[1];
    const least = first * this.session.smallest;
    const next = zoomed(this.window, this.size, x, y, factor, least, first * 1e4);
    this.tell({ state: "moving", isLeast: next.h <= least * 1.0001 });
    this.listeners.onWindow(next);
  }

  hover(x, y) {
    this.hoverPoint(x, y);
    if (!this.cut || this.isStale || !this.window) return;
    const cell = this.renderer.pick(x, y);
    this.pointer = offsetOf(this.window, this.size, x, y);
    this.listeners.onPointer?.(placeOf(this.window, this.size, x, y), this.distanceAt(x, y), this);
    if (cell === this.hovered) return;
    this.hovered = cell;
    this.draw();
    this.listeners.onHover?.(cell, this);
  }

  /** Tell which example is under the pointer, and how far it is from the plane. */
  hoverPoint(x, y) {
    if (!this.plane || !this.listeners.onExample) return;
    let best = null;
    for (const point of this.settings.points ? this.pointsInView() : []) {
      const far = Math.hypot(point.x - x, point.y - y);
      if (far < 7 && (!best || far < best.far)) best = { ...point, far };
    }
    if (best?.row !== this.example) this.listeners.onExample(best);
    this.example = best?.row;
  }

  unhover() {
    if (this.hovered < 0) return;
    this.hovered = -1;
    this.draw();
    this.listeners.onHover?.(-1, this);
  }

  /** Return the distance from a pixel to the boundary in this window, in units of the plane. */
  distanceAt(px, py) {
    const { cut, size } = this;
    if (!cut?.boundary || Math.abs(cut.half[0] - cut.half[1] * (size.width / size.height)) > 1e-6 * cut.half[0]) {
      return null;
    }
    const { scale, shift } = rebasing(cut, this.window, size);
    const x = ((px / size.width) * 2 - 1 - shift[0]) / scale[0];
    const y = (1 - (py / size.height) * 2 - shift[1]) / scale[1];
    const wide = cut.half[0] / cut.half[1];
    const points = cut.scaled ?? (cut.scaled = cut.boundary.points.map((p, k) => (k % 2 ? p : p * wide)));
    const away = distanceToLines(points, cut.boundary.first, x * wide, y) * cut.half[1];
    return Number.isFinite(away) ? away : null;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.window || !this.plane) return;
    const { width, height } = this.size;
    const moves = {
      ArrowLeft: [STEP * width, 0], ArrowRight: [-STEP * width, 0],
      ArrowUp: [0, STEP * height], ArrowDown: [0, -STEP * height],
    };
    if (moves[event.key]) {
      this.listeners.onWindow(panned(this.window, this.size, ...moves[event.key]));
    } else if (event.key === "+" || event.key === "=") this.zoom(width / 2, height / 2, 1 / FACTOR);
    else if (event.key === "-") this.zoom(width / 2, height / 2, FACTOR);
    else if (event.key === "0" || event.key === "Home") this.listeners.onHome?.();
    else if (event.key === "Enter") {
      this.hover(width / 2, height / 2);
      this.listeners.onClick?.([this.window.u, this.window.v], event.shiftKey, this);
    } else return;
    event.preventDefault();
  }

  tell(news) {
    this.listeners.onNews?.(news, this);
  }

  /** Return what is drawn as a PNG. */
  async png() {
    this.drawNow();
    const both = document.createElement("canvas");
    both.width = this.canvas.width;
    both.height = this.canvas.height;
    const context = both.getContext("2d");
    context.drawImage(this.canvas, 0, 0);
    context.drawImage(this.overlay, 0, 0, both.width, both.height);
    return new Promise((resolve) => both.toBlob(resolve, "image/png"));
  }

  close() {
    this.stop?.abort();
    clearTimeout(this.timer);
    this.resizing.disconnect();
  }
}

/** Return which part of a window to try at once, from how many cells its middle has. */
export function sideOf({ cells, covered }) {
  return cells / covered > 2 * MOST ? Math.sqrt((covered * 0.7 * MOST) / cells) : 1;
}

function local(event) {
  const box = event.currentTarget.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function ring(context, x, y, radius, colour, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}
