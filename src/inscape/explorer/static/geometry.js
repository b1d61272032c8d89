// Geometry of convex cells in flat arrays: corners of cell i are corners[first[i]] to first[i + 1].

/** Return where the corners of each polygon begin, from how many each has. */
export function offsets(counts) {
  const first = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i += 1) first[i + 1] = first[i] + counts[i];
  return first;
}

/** Return the corners of a cell as [x, y] pairs. */
export function polygon(cells, i) {
  const places = [];
  for (let k = cells.first[i]; k < cells.first[i + 1]; k += 1) {
    const vertex = cells.corners[k];
    places.push([cells.vertices[2 * vertex], cells.vertices[2 * vertex + 1]]);
  }
  return places;
}

/** Return the area of a polygon, positive if it goes counter-clockwise. */
export function area(places) {
  let twice = 0;
  const [x0, y0] = places[0];
  for (let k = 1; k + 1 < places.length; k += 1) {
    const [x1, y1] = places[k];
    const [x2, y2] = places[k + 1];
    twice += (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0);
  }
  return twice / 2;
}

/** Return the centre of mass of a polygon; of one without area, the mean of its corners. */
export function centroid(places) {
  const [x0, y0] = places[0];
  let twice = 0;
  let x = 0;
  let y = 0;
  for (let k = 1; k + 1 < places.length; k += 1) {
    const ax = places[k][0] - x0;
    const ay = places[k][1] - y0;
    const bx = places[k + 1][0] - x0;
    const by = places[k + 1][1] - y0;
    const cross = ax * by - bx * ay;
    twice += cross;
    x += cross * (ax + bx);
    y += cross * (ay + by);
  }
  if (twice === 0) {
    const sum = places.reduce((a, b) => [a[0] + b[0], a[1] + b[1]]);
    return [sum[0] / places.length, sum[1] / places.length];
  }
  return [x0 + x / (3 * twice), y0 + y / (3 * twice)];
}

/** Return the cells that share an edge with a cell, in order. */
export function neighbours(cells, i) {
  const sides = new Set();
  const key = (a, b) => (a < b ? `${a},${b}` : `${b},${a}`);
  const { corners, first } = cells;
  for (let k = first[i]; k < first[i + 1]; k += 1) {
    sides.add(key(corners[k], corners[k + 1 < first[i + 1] ? k + 1 : first[i]]));
  }
  const own = new Set(corners.subarray(first[i], first[i + 1]));
  const near = [];
  for (let j = 0; j + 1 < first.length; j += 1) {
    if (j === i) continue;
    for (let k = first[j]; k < first[j + 1]; k += 1) {
      if (!own.has(corners[k])) continue;
      if (sides.has(key(corners[k], corners[k + 1 < first[j + 1] ? k + 1 : first[j]]))) {
        near.push(j);
        break;
      }
    }
  }
  return near;
}

/** Return the cell that holds a place, -1 if none does. */
export function cellAt(cells, x, y) {
  const { vertices, corners, first } = cells;
  for (let i = 0; i + 1 < first.length; i += 1) {
    let inside = true;
    for (let k = first[i]; inside && k < first[i + 1]; k += 1) {
      const a = corners[k];
      const b = corners[k + 1 < first[i + 1] ? k + 1 : first[i]];
      const dx = vertices[2 * b] - vertices[2 * a];
      const dy = vertices[2 * b + 1] - vertices[2 * a + 1];
      inside = dx * (y - vertices[2 * a + 1]) - dy * (x - vertices[2 * a]) >= 0;
    }
    if (inside) return i;
  }
  return -1;
}

/** Return the least distance of a place from polylines, Infinity without any. */
export function distanceToLines(points, first, x, y) {
  let best = Infinity;
  for (let line = 0; line + 1 < first.length; line += 1) {
    for (let k = first[line]; k + 1 < first[line + 1]; k += 1) {
      const ax = points[2 * k];
      const ay = points[2 * k + 1];
      const dx = points[2 * k + 2] - ax;
      const dy = points[2 * k + 3] - ay;
      const size = dx * dx + dy * dy;
      const t = size > 0 ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / size)) : 0;
      best = Math.min(best, Math.hypot(x - ax - t * dx, y - ay - t * dy));
    }
  }
  return best;
}
