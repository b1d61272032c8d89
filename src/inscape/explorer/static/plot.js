// A function along a segment, as SVG: straight between its breakpoints, so that it is exact.

const WIDTH = 640;
const HEIGHT = 236;
const ROOM = { left: 52, right: 12, top: 10, bottom: 44 };

/** Return round numbers between two, about so many. */
export function ticks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / about;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((k) => k >= raw);
  const places = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k += 1) places.push(k * step);
  return places;
}

/** Return a number as it is written on an axis. */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(4));
}

/** Return paths and axes of outputs over t; `values` holds the outputs one after the other. */
export function plotted(t, values, count) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  [low, high] = [low - room, high + room];
  const x = (at) => ROOM.left + at * (WIDTH - ROOM.left - ROOM.right);
  const y = (value) => ROOM.top + ((high - value) / (high - low)) * (HEIGHT - ROOM.top - ROOM.bottom);
  const paths = [];
  for (let k = 0; k < count; k += 1) {
    const places = Array.from(t, (at, i) => `${x(at).toFixed(1)},${y(values[k * t.length + i]).toFixed(1)}`);
    paths.push(`M${places.join("L")}`);
  }
  return {
    width: WIDTH, height: HEIGHT, paths, bottom: HEIGHT - ROOM.bottom, left: ROOM.left,
    right: WIDTH - ROOM.right,
    knots: t.length <= 400 ? Array.from(t.subarray(1, -1), (at) => x(at)) : [],
    across: ticks(0, 1, 4).map((at) => ({ at: x(at), text: short(at) })),
    up: ticks(low, high, 4).map((value) => ({ at: y(value), text: short(value) })),
  };
}
