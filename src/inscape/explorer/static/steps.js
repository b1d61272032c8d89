// Steps of a training: which are played, in which order they are measured.

/** Return so many of the steps, evenly spaced, with both ends. */
export function spaced(steps, most) {
  if (steps.length <= most) return steps;
  return Array.from({ length: most }, (_, k) => steps[Math.round((k * (steps.length - 1)) / (most - 1))]);
}

/** Return by what a frame is known: its plane, its window and its step. */
export function frameKey(asked) {
  const { kind, rows, seed, centre, half, step } = asked;
  return JSON.stringify([kind, rows, seed, centre, half, step]);
}

/** Return steps in an order in which the first ones are spread over all of them. */
export function coarseFirst(steps) {
  const order = [];
  const seen = new Set();
  for (let stride = 2 ** Math.ceil(Math.log2(steps.length)); stride >= 1; stride /= 2) {
    for (let k = 0; k < steps.length; k += stride) {
      if (!seen.has(k)) order.push(steps[k]);
      seen.add(k);
    }
    const last = steps.length - 1;
    if (!seen.has(last)) order.push(steps[last]);
    seen.add(last);
  }
  return order;
}
