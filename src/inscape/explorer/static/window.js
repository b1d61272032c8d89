// The window: the part of the plane that a canvas shows. A window is {u, v, h}: its centre, and half
// its height, in coordinates of the plane; half its width is h times the aspect of the canvas.

/** Return the place under a pixel of a canvas, relative to the centre of the window. */
export function offsetOf(window, size, px, py) {
  const scale = (2 * window.h) / size.height;
  return [(px - size.width / 2) * scale, (size.height / 2 - py) * scale];
}

/** Return the place of the plane under a pixel of a canvas. */
export function placeOf(window, size, px, py) {
  const [du, dv] = offsetOf(window, size, px, py);
  return [window.u + du, window.v + dv];
}

/** Return the pixel at a place of the plane. */
export function pixelOf(window, size, u, v) {
  const scale = size.height / (2 * window.h);
  return [size.width / 2 + (u - window.u) * scale, size.height / 2 - (v - window.v) * scale];
}

/** Return a window with the place under a pixel kept where it is, no smaller than the least. */
export function zoomed(window, size, px, py, factor, least, most) {
  const h = Math.min(most, Math.max(least, window.h * factor));
  const [du, dv] = offsetOf(window, size, px, py);
  const kept = 1 - h / window.h;
  return { u: window.u + du * kept, v: window.v + dv * kept, h };
}

/** Return a window moved by pixels. */
export function panned(window, size, dx, dy) {
  const scale = (2 * window.h) / size.height;
  return { ...window, u: window.u - dx * scale, v: window.v + dy * scale };
}

/** Return half the width and half the height. */
export function halves(window, size) {
  return [(window.h * size.width) / size.height, window.h];
}

/**
 * Return scale and shift from the coordinates of a cut (-1 to 1 of its own window) to those of the
 * window that is shown: centres are subtracted in double precision, so that it stays sharp.
 */
export function rebasing(cut, window, size) {
  const [hx, hy] = halves(window, size);
  return {
    scale: [cut.half[0] / hx, cut.half[1] / hy],
    shift: [(cut.centre[0] - window.u) / hx, (cut.centre[1] - window.v) / hy],
  };
}

/** Tell whether a cut covers a window. */
export function covers(cut, window, size) {
  const [hx, hy] = halves(window, size);
  const room = 1 + 1e-9;
  return (
    Math.abs(window.u - cut.centre[0]) + hx <= cut.half[0] * room &&
    Math.abs(window.v - cut.centre[1]) + hy <= cut.half[1] * room
  );
}
