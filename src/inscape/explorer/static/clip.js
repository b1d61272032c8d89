// Windows of cells that are known already: those inside, clipped at the sides, in coordinates of the
// new window. Differences are taken in double precision, so that a deep zoom stays sharp.

const SIDE = 255; // an edge on the side of the window

/** Return boxes of cells: least x, least y, largest x, largest y of each. */
export function boxesOf(vertices, corners, first) {
  const count = first.length - 1;
  const boxes = new Float64Array(4 * count);
  for (let i = 0; i < count; i += 1) {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let k = first[i]; k < first[i + 1]; k += 1) {
      const vertex = corners ? corners[k] : k;
      x0 = Math.min(x0, vertices[2 * vertex]);
      x1 = Math.max(x1, vertices[2 * vertex]);
      y0 = Math.min(y0, vertices[2 * vertex + 1]);
      y1 = Math.max(y1, vertices[2 * vertex + 1]);
    }
    boxes.set([x0, y0, x1, y1], 4 * i);
  }
  return boxes;
}

/** Return where two points, in an order of their own, have a coordinate of -1 or 1. */
function crossing(a, b, axis, side) {
  const [p, q] = a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]) ? [a, b] : [b, a];
  const t = (side - p[axis]) / (q[axis] - p[axis]);
  const place = [p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])];
  place[axis] = side;
  return place;
}

/**
 * Return the part of a convex polygon between -1 and 1; `layers[k]` is that of the edge from corner k
 * to the next. Crossings of an edge do not depend on the cell that it is clipped for.
 */
export function clippedPolygon(places, layers) {
  for (const [axis, side] of [[0, -1], [0, 1], [1, -1], [1, 1]]) {
    const kept = [];
    const keptLayers = [];
    places.forEach((place, k) => {
      const next = places[(k + 1) % places.length];
      const isIn = place[axis] * side <= 1;
      const isNextIn = next[axis] * side <= 1;
      if (isIn) {
        kept.push(place);
        keptLayers.push(layers[k]);
      }
      if (isIn !== isNextIn) {
        kept.push(crossing(place, next, axis, side));
        keptLayers.push(isIn ? SIDE : layers[k]);
      }
    });
    [places, layers] = [kept, keptLayers];
    if (places.length < 3) return { places: [], layers: [] };
  }
  return { places, layers };
}

/** Return how coordinates of one window become those of another. */
export function moving(from, to) {
  const scale = [from.half[0] / to.half[0], from.half[1] / to.half[1]];
  const shift = [
    (from.centre[0] - to.centre[0]) / to.half[0], (from.centre[1] - to.centre[1]) / to.half[1],
  ];
  return (x, y) => [x * scale[0] + shift[0], y * scale[1] + shift[1]];
}

/**
 * Return the polygons of a known window inside another: vertices, corners, counts, layers, and from
 * which polygon each comes. Without corners polygons have vertices of their own.
 */
export function clippedCells(level, to, { vertices, corners, first, layers, boxes }) {
  const move = moving(level, to);
  const found = { vertices: [], corners: [], counts: [], layers: [], source: [] };
  const known = new Map();
  const welded = ([x, y]) => {
    const key = `${x},${y}`;
    let number = known.get(key);
    if (number === undefined) {
      number = found.vertices.length / 2;
      found.vertices.push(x, y);
      known.set(key, number);
    }
    return number;
  };
  for (let i = 0; i + 1 < first.length; i += 1) {
    const [x0, y0] = move(boxes[4 * i], boxes[4 * i + 1]);
    const [x1, y1] = move(boxes[4 * i + 2], boxes[4 * i + 3]);
    if (x1 < -1 || y1 < -1 || x0 > 1 || y0 > 1) continue;
    let places = [];
    let own = [];
    for (let k = first[i]; k < first[i + 1]; k += 1) {
      const vertex = corners ? corners[k] : k;
      places.push(move(vertices[2 * vertex], vertices[2 * vertex + 1]));
      own.push(layers ? layers[k] : SIDE);
    }
    if (x0 < -1 || y0 < -1 || x1 > 1 || y1 > 1) {
      ({ places, layers: own } = clippedPolygon(places, own));
      if (places.length < 3) continue;
    }
    for (const place of places) found.corners.push(welded(place));
    found.layers.push(...own);
    found.counts.push(places.length);
    found.source.push(i);
  }
  return {
    vertices: new Float32Array(found.vertices), corners: new Uint32Array(found.corners),
    counts: new Uint16Array(found.counts), layers: new Uint8Array(found.layers),
    source: new Uint32Array(found.source),
  };
}

/** Return the segments of polylines that meet a window, each as a line of its own. */
export function clippedLines(level, to, points, first) {
  const move = moving(level, to);
  const kept = [];
  for (let line = 0; line + 1 < first.length; line += 1) {
    for (let k = first[line]; k + 1 < first[line + 1]; k += 1) {
      const a = move(points[2 * k], points[2 * k + 1]);
      const b = move(points[2 * k + 2], points[2 * k + 3]);
      const part = inside(a, b);
      if (part) kept.push(...part[0], ...part[1]);
    }
  }
  const starts = new Uint32Array(kept.length / 4 + 1);
  for (let k = 0; k < starts.length; k += 1) starts[k] = 2 * k;
  return { points: new Float32Array(kept), first: starts };
}

/** Return the part of a segment between -1 and 1, nothing if there is none. */
function inside(a, b) {
  let [from, to] = [0, 1];
  for (const axis of [0, 1]) {
    const step = b[axis] - a[axis];
    for (const side of [-1, 1]) {
      const room = 1 - side * a[axis];
      const speed = side * step;
      if (speed === 0 && room < 0) return null;
      if (speed > 0) to = Math.min(to, room / speed);
      if (speed < 0) from = Math.max(from, room / speed);
    }
  }
  if (from >= to) return null;
  const at = (t) => [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
  return [at(from), at(to)];
}
