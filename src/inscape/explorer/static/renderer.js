// Draws convex polygons with WebGL2: colours and the number of each cell in one pass, so that the
// cell under a pixel is read back from a second buffer.

import { rebasing } from "./window.js";

const ROW = 2048; // colours in a row of their texture
const NONE = 0xffffffff;

const CELL_VERTEX = `#version 300 es
layout(location=0) in vec2 place;
layout(location=1) in uint id;
layout(location=2) in uint paint;
uniform vec2 scale, shift;
uniform highp sampler2D colours;
uniform bool byOwner;
flat out vec4 colour;
flat out uint cell;
void main() {
  uint at = byOwner ? id : paint;
  colour = texelFetch(colours, ivec2(int(at % ${ROW}u), int(at / ${ROW}u)), 0);
  cell = id;
  gl_Position = vec4(place * scale + shift, 0.0, 1.0);
}`;
const CELL_FRAGMENT = `#version 300 es
precision highp float;
flat in vec4 colour;
flat in uint cell;
layout(location=0) out vec4 seen;
layout(location=1) out uint number;
void main() { seen = colour; number = cell; }`;

const EDGE_VERTEX = `#version 300 es
layout(location=0) in vec2 place;
layout(location=3) in uint layer;
uniform vec2 scale, shift;
uniform vec4 palette[8];
uniform bool byLayer;
uniform vec4 plain;
flat out vec4 colour;
void main() {
  colour = byLayer && layer < 255u ? palette[layer % 8u] : plain;
  gl_Position = vec4(place * scale + shift, 0.0, 1.0);
}`;
const EDGE_FRAGMENT = `#version 300 es
precision highp float;
flat in vec4 colour;
out vec4 seen;
void main() { seen = vec4(colour.rgb * colour.a, colour.a); }`;

const PICTURE_VERTEX = `#version 300 es
uniform vec2 scale, shift;
out vec2 at;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  at = corner;
  gl_Position = vec4((corner * 2.0 - 1.0) * scale + shift, 0.0, 1.0);
}`;
const PICTURE_FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
uniform sampler2D picture;
layout(location=0) out vec4 seen;
layout(location=1) out uint number;
void main() { seen = texture(picture, at); number = ${NONE}u; }`;
const COPY_FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
uniform sampler2D picture;
out vec4 seen;
void main() { seen = texture(picture, at); }`;

/** Draws the cells of one canvas. */
export class Renderer {
  /** Return a renderer, or null where there is no WebGL2. */
  static on(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: false });
    return gl ? new Renderer(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.isLost = false;
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.isLost = true;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.isLost = false;
      this.begin();
      this.onRestored?.();
    });
    this.begin();
  }

  begin() {
    const { gl } = this;
    this.programs = {
      cells: program(gl, CELL_VERTEX, CELL_FRAGMENT),
      edges: program(gl, EDGE_VERTEX, EDGE_FRAGMENT),
      picture: program(gl, PICTURE_VERTEX, PICTURE_FRAGMENT),
      copy: program(gl, PICTURE_VERTEX, COPY_FRAGMENT),
    };
    this.array = gl.createVertexArray();
    this.buffers = ["place", "id", "paint", "layer", "fans", "lines"].map(() => gl.createBuffer());
    this.colours = texture(gl, gl.NEAREST);
    this.picture = texture(gl, gl.LINEAR);
    this.pictureWindow = null;
    this.cells = null;
    this.target = null;
  }

  /** Take the geometry of a cut: cells, and the pieces of those that the boundary crosses. */
  setCells(cells, pieces, layers) {
    const { gl } = this;
    const { place, id, paint, layer, fans, lines, fansOfCells } = expanded(cells, pieces, layers);
    gl.bindVertexArray(this.array);
    const [atPlace, atId, atPaint, atLayer, atFans, atLines] = this.buffers;
    attribute(gl, 0, atPlace, place, 2, gl.FLOAT);
    attribute(gl, 1, atId, id, 1, gl.UNSIGNED_INT);
    attribute(gl, 2, atPaint, paint, 1, gl.UNSIGNED_INT);
    attribute(gl, 3, atLayer, layer, 1, gl.UNSIGNED_BYTE);
    gl.bindVertexArray(null);
    for (const [buffer, data] of [[atFans, fans], [atLines, lines]]) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, data, gl.STATIC_DRAW);
    }
    this.cells = { ...cells, fans: fans.length, lines: lines.length, fansOfCells };
  }

  /** Take the colours of all cells and pieces, four bytes each. */
  setColours(rgba) {
    const { gl } = this;
    const rows = Math.max(1, Math.ceil(rgba.length / 4 / ROW));
    const filled = new Uint8Array(rows * ROW * 4);
    filled.set(rgba);
    gl.bindTexture(gl.TEXTURE_2D, this.colours);
    gl.texImage2D(
      gl.TEXTURE_2D, 0, gl.RGBA8, ROW, rows, 0, gl.RGBA, gl.UNSIGNED_BYTE, filled,
    );
  }

  /** Take a raster, four bytes a pixel, rows going up; null takes it away. */
  setPicture(rgba, raster) {
    const { gl } = this;
    this.pictureWindow = raster;
    if (!raster) return;
    gl.bindTexture(gl.TEXTURE_2D, this.picture);
    gl.texImage2D(
      gl.TEXTURE_2D, 0, gl.RGBA8, raster.width, raster.height, 0, gl.RGBA, gl.UNSIGNED_BYTE, rgba,
    );
  }

  forget() {
    this.cells = null;
    this.pictureWindow = null;
  }

  /** Draw a window. */
  draw(window, size, { paper, ink, edges, byOwner, palette }) {
    if (this.isLost) return;
    const { gl, canvas } = this;
    this.fit();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target.frame);
    gl.drawBuffers([gl.COLOR_ATTACHMENT0, gl.COLOR_ATTACHMENT1]);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.disable(gl.BLEND);
    gl.clearBufferfv(gl.COLOR, 0, [...paper.map((x) => x / 255), 1]);
    gl.clearBufferuiv(gl.COLOR, 1, [NONE, 0, 0, 0]);
    if (this.pictureWindow) this.drawPicture(rebasing(this.pictureWindow, window, size));
    if (this.cells) this.drawCells(rebasing(this.cells, window, size), byOwner);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, canvas.width, canvas.height);
    this.copy();
    if (this.cells && edges !== "none") {
      this.drawEdges(rebasing(this.cells, window, size), { ink, edges, palette });
    }
  }

  drawPicture({ scale, shift }) {
    const { gl } = this;
    const used = this.programs.picture;
    gl.useProgram(used.program);
    gl.uniform2fv(used.at("scale"), scale);
    gl.uniform2fv(used.at("shift"), shift);
    gl.bindTexture(gl.TEXTURE_2D, this.picture);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  drawCells({ scale, shift }, byOwner) {
    const { gl, cells } = this;
    const used = this.programs.cells;
    gl.useProgram(used.program);
    gl.uniform2fv(used.at("scale"), scale);
    gl.uniform2fv(used.at("shift"), shift);
    gl.uniform1i(used.at("byOwner"), byOwner ? 1 : 0);
    gl.bindTexture(gl.TEXTURE_2D, this.colours);
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[4]);
    const count = byOwner ? cells.fansOfCells : cells.fans;
    gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
  }

  copy() {
    const { gl } = this;
    const used = this.programs.copy;
    gl.useProgram(used.program);
    gl.uniform2f(used.at("scale"), 1, 1);
    gl.uniform2f(used.at("shift"), 0, 0);
    gl.bindTexture(gl.TEXTURE_2D, this.target.colour);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  drawEdges({ scale, shift }, { ink, edges, palette }) {
    const { gl, cells } = this;
    const used = this.programs.edges;
    // fainter where edges are dense: as many as there are pixels would hide the colours
    const seen = cells.lines / 2 / (scale[0] * scale[1]);
    const alpha = Math.min(0.55, Math.max(0.08, 60 / Math.sqrt(seen + 1)));
    gl.useProgram(used.program);
    gl.uniform2fv(used.at("scale"), scale);
    gl.uniform2fv(used.at("shift"), shift);
    gl.uniform1i(used.at("byLayer"), edges === "layer" ? 1 : 0);
    gl.uniform4fv(used.at("plain"), [...ink.map((x) => x / 255), alpha]);
    const strong = Math.min(0.95, 2 * alpha);
    const flat = Array.from({ length: 8 }, (_, k) => palette[k % palette.length]);
    gl.uniform4fv(used.at("palette[0]"), flat.flatMap((c) => [...c.map((x) => x / 255), strong]));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[5]);
    gl.drawElements(gl.LINES, cells.lines, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
    gl.disable(gl.BLEND);
  }

  /** Return the number of the cell under a pixel of the page, -1 where there is none. */
  pick(px, py) {
    if (!this.target || !this.cells || this.isLost) return -1;
    const { gl, canvas } = this;
    const ratio = canvas.width / canvas.clientWidth;
    const x = Math.min(canvas.width - 1, Math.max(0, Math.floor(px * ratio)));
    const y = Math.min(canvas.height - 1, Math.max(0, canvas.height - 1 - Math.floor(py * ratio)));
    const number = new Uint32Array(1);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target.frame);
    gl.readBuffer(gl.COLOR_ATTACHMENT1);
    gl.readPixels(x, y, 1, 1, gl.RED_INTEGER, gl.UNSIGNED_INT, number);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return number[0] === NONE ? -1 : number[0];
  }

  /** Make the buffers as large as the canvas is on the screen. */
  fit() {
    const { gl, canvas } = this;
    const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (this.target && this.target.width === width && this.target.height === height) return;
    canvas.width = width;
    canvas.height = height;
    if (this.target) {
      gl.deleteFramebuffer(this.target.frame);
      gl.deleteTexture(this.target.colour);
      gl.deleteTexture(this.target.number);
    }
    const frame = gl.createFramebuffer();
    const colour = texture(gl, gl.NEAREST);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
    const number = texture(gl, gl.NEAREST);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.R32UI, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    for (const [place, kept] of [[gl.COLOR_ATTACHMENT0, colour], [gl.COLOR_ATTACHMENT1, number]]) {
      gl.framebufferTexture2D(gl.FRAMEBUFFER, place, gl.TEXTURE_2D, kept, 0);
    }
    this.target = { frame, colour, number, width, height };
  }
}

/** Return vertices of all corners with the cell of each, fans of triangles, and lines. */
export function expanded(cells, pieces, layers) {
  const own = cells.corners.length;
  const more = pieces ? pieces.vertices.length / 2 : 0;
  const count = cells.first.length - 1;
  const place = new Float32Array(2 * (own + more));
  const id = new Uint32Array(own + more);
  const paint = new Uint32Array(own + more);
  const layer = new Uint8Array(own + more).fill(255);
  const fans = [];
  const lines = [];
  layer.set(layers);
  for (let i = 0; i < count; i += 1) {
    const begin = cells.first[i];
    const end = cells.first[i + 1];
    for (let k = begin; k < end; k += 1) {
      const vertex = cells.corners[k];
      place[2 * k] = cells.vertices[2 * vertex];
      place[2 * k + 1] = cells.vertices[2 * vertex + 1];
      id[k] = i;
      paint[k] = i;
      const next = k + 1 < end ? k + 1 : begin;
      // each edge belongs to two cells and is drawn for one; its layer is that of the last end
      if (vertex < cells.corners[next] || layers[k] === 255) lines.push(next, k);
    }
    for (let k = begin + 1; k + 1 < end; k += 1) fans.push(begin, k, k + 1);
  }
  const fansOfCells = fans.length;
  for (let i = 0; pieces && i + 1 < pieces.first.length; i += 1) {
    const begin = own + pieces.first[i];
    const end = own + pieces.first[i + 1];
    for (let k = begin; k < end; k += 1) {
      place[2 * k] = pieces.vertices[2 * (k - own)];
      place[2 * k + 1] = pieces.vertices[2 * (k - own) + 1];
      id[k] = pieces.cells[i];
      paint[k] = count + i;
    }
    for (let k = begin + 1; k + 1 < end; k += 1) fans.push(begin, k, k + 1);
  }
  return {
    place, id, paint, layer, fans: new Uint32Array(fans), lines: new Uint32Array(lines), fansOfCells,
  };
}

function attribute(gl, location, buffer, data, size, kind) {
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
  gl.enableVertexAttribArray(location);
  if (kind === gl.FLOAT) gl.vertexAttribPointer(location, size, kind, false, 0, 0);
  else gl.vertexAttribIPointer(location, size, kind, 0, 0);
}

function texture(gl, filter) {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return made;
}

function program(gl, vertex, fragment) {
  const linked = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(linked, shader);
  }
  gl.linkProgram(linked);
  if (!gl.getProgramParameter(linked, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`WebGL: ${gl.getProgramInfoLog(linked)}`);
  }
  const known = new Map();
  const at = (name) => {
    if (!known.has(name)) known.set(name, gl.getUniformLocation(linked, name));
    return known.get(name);
  };
  return { program: linked, at };
}
