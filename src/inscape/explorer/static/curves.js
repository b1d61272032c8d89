// Curves over the steps of a training, as paths of an SVG; their steps are those of the slider.

import { ticks, short } from "./plot.js";

const WIDTH = 340;
const HEIGHT = 96;
const ROOM = { left: 44, right: 10, top: 8, bottom: 8 };

/** Return the range of the values that are numbers, a little wider; null without any. */
export function rangeOfCurves(curves) {
  let low = Infinity;
  let high = -Infinity;
  for (const { values } of curves) {
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) return null;
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - room, high + room];
}

/** Return where each step of a training lies between the left and the right of a plot. */
export function placed(step, steps) {
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const along = last > first ? (step - first) / (last - first) : 0.5;
  return ROOM.left + along * (WIDTH - ROOM.left - ROOM.right);
}

/** Return the recorded step that is nearest to a place of a plot. */
export function stepAt(x, steps) {
  let best = steps[0];
  for (const step of steps) {
    if (Math.abs(placed(step, steps) - x) < Math.abs(placed(best, steps) - x)) best = step;
  }
  return best;
}

/** Return paths of curves `{ name, steps, values }` over all steps; gaps where a value is missing. */
export function drawnCurves(curves, steps) {
  const range = rangeOfCurves(curves);
  if (!range) return null;
  const [low, high] = range;
  const y = (value) => ROOM.top + ((high - value) / (high - low)) * (HEIGHT - ROOM.top - ROOM.bottom);
  const paths = curves.map(({ steps: known, values }) => {
    let path = "";
    let isDrawing = false;
    known.forEach((step, k) => {
      if (!Number.isFinite(values[k])) {
        isDrawing = false;
        return;
      }
      path += `${isDrawing ? "L" : "M"}${placed(step, steps).toFixed(1)},${y(values[k]).toFixed(1)}`;
      isDrawing = true;
    });
    return path;
  });
  return {
    width: WIDTH, height: HEIGHT, left: ROOM.left, right: WIDTH - ROOM.right, top: ROOM.top,
    bottom: HEIGHT - ROOM.bottom, paths,
    up: ticks(low, high, 3).map((value) => ({ at: y(value), text: short(value) })),
  };
}
