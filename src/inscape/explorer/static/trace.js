// A measure over the updates of a training, as SVG.

import { short, ticks } from "./plot.js";

const WIDTH = 520;
const HEIGHT = 150;
const ROOM = { left: 56, right: 14, top: 10, bottom: 26 };

/** Return the path and the axes of values over steps, null without two values. */
export function traceOf(steps, values) {
  const known = steps.map((step, k) => [step, values[k]]).filter(([, value]) => Number.isFinite(value));
  if (known.length < 2) return null;
  const first = known[0][0];
  const last = Math.max(known.at(-1)[0], first + 1);
  let low = Math.min(...known.map(([, value]) => value));
  let high = Math.max(...known.map(([, value]) => value));
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  [low, high] = [low - room, high + room];
  const x = (step) => ROOM.left + ((step - first) / (last - first)) * (WIDTH - ROOM.left - ROOM.right);
  const y = (value) => ROOM.top + ((high - value) / (high - low)) * (HEIGHT - ROOM.top - ROOM.bottom);
  const places = known.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`);
  return {
    width: WIDTH, height: HEIGHT, path: `M${places.join("L")}`, left: ROOM.left,
    right: WIDTH - ROOM.right, bottom: HEIGHT - ROOM.bottom,
    across: ticks(first, last, 5).map((step) => ({ at: x(step), text: short(step) })),
    up: ticks(low, high, 3).map((value) => ({ at: y(value), text: short(value) })),
  };
}
