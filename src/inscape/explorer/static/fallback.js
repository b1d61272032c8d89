// Draws the same with a plain canvas, where there is no WebGL2.

import { cellAt } from "./geometry.js";
import { rebasing } from "./window.js";
import { css } from "./colours.js";

/** Draws the cells of one canvas, slowly. */
export class CanvasRenderer {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.forget();
  }

  setCells(cells, pieces) {
    this.cells = cells;
    this.pieces = pieces;
  }

  setColours(rgba) {
    this.rgba = rgba;
  }

  setPicture(rgba, raster) {
    this.raster = raster;
    if (!raster) return;
    const { width, height } = raster;
    this.image = document.createElement("canvas");
    this.image.width = width;
    this.image.height = height;
    const flipped = new Uint8ClampedArray(rgba.length);
    for (let row = 0; row < height; row += 1) {
      const from = 4 * width * row;
      flipped.set(rgba.subarray(from, from + 4 * width), 4 * width * (height - 1 - row));
    }
    this.image.getContext("2d").putImageData(new ImageData(flipped, width, height), 0, 0);
  }

  forget() {
    this.cells = null;
    this.pieces = null;
    this.raster = null;
    this.rgba = null;
  }

  draw(window, size, { paper, ink, edges, byOwner }) {
    const { canvas, context } = this;
    canvas.width = Math.max(1, Math.round(size.width));
    canvas.height = Math.max(1, Math.round(size.height));
    this.seen = { window, size };
    context.fillStyle = css(paper);
    context.fillRect(0, 0, canvas.width, canvas.height);
    const placed = ({ scale, shift }) => (x, y) => [
      ((x * scale[0] + shift[0] + 1) / 2) * canvas.width,
      ((1 - (y * scale[1] + shift[1])) / 2) * canvas.height,
    ];
    if (this.raster) {
      const at = placed(rebasing(this.raster, window, size));
      const [x0, y0] = at(-1, 1);
      const [x1, y1] = at(1, -1);
      context.drawImage(this.image, x0, y0, x1 - x0, y1 - y0);
    }
    if (!this.cells || !this.rgba) return;
    const at = placed(rebasing(this.cells, window, size));
    const { first, corners, vertices } = this.cells;
    const count = first.length - 1;
    const path = (places, begin, end, vertexOf) => {
      context.beginPath();
      for (let k = begin; k < end; k += 1) {
        const vertex = vertexOf(k);
        const [x, y] = at(places[2 * vertex], places[2 * vertex + 1]);
        if (k === begin) context.moveTo(x, y);
        else context.lineTo(x, y);
      }
      context.closePath();
    };
    const fill = (i) => {
      context.fillStyle = css([this.rgba[4 * i], this.rgba[4 * i + 1], this.rgba[4 * i + 2]]);
      context.fill();
    };
    context.strokeStyle = css(ink, 0.35);
    context.lineWidth = 0.7;
    for (let i = 0; i < count; i += 1) {
      path(vertices, first[i], first[i + 1], (k) => corners[k]);
      fill(i);
      if (edges !== "none") context.stroke();
    }
    const { pieces } = this;
    for (let i = 0; pieces && !byOwner && i + 1 < pieces.first.length; i += 1) {
      path(pieces.vertices, pieces.first[i], pieces.first[i + 1], (k) => k);
      fill(count + i);
    }
  }

  pick(px, py) {
    if (!this.cells || !this.seen) return -1;
    const { window, size } = this.seen;
    const { scale, shift } = rebasing(this.cells, window, size);
    const x = ((px / size.width) * 2 - 1 - shift[0]) / scale[0];
    const y = (1 - (py / size.height) * 2 - shift[1]) / scale[1];
    return cellAt(this.cells, x, y);
  }
}
