// Colours: of classes, of values, of layers; Okabe and Ito's, as in the report.

const CLASSES = [
  [0, 114, 178], [230, 159, 0], [0, 158, 115], [213, 94, 0], [204, 121, 167],
  [86, 180, 233], [240, 228, 66], [140, 86, 75], [127, 127, 127], [148, 103, 189],
];
export const LAYERS = [
  [0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233],
];
export const PAPER = { light: [253, 252, 250], dark: [19, 20, 22] };
export const INK = { light: [27, 28, 30], dark: [236, 234, 230] };

/** Return the colour of a class; after ten, hues that are far from those before. */
export function classColour(number) {
  if (number < CLASSES.length) return CLASSES[number];
  return turned((number * 0.618034) % 1);
}

function turned(hue) {
  const part = (k) => {
    const t = (k + hue * 12) % 12;
    return Math.round(255 * (0.55 - 0.3 * Math.max(-1, Math.min(t - 3, 9 - t, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** Return a colour between two. */
export function mixed(a, b, t) {
  return [0, 1, 2].map((k) => Math.round(a[k] + (b[k] - a[k]) * t));
}

/** Return what a probability of the answer (0 to 255) is worth between guessing and certainty. */
export function certainty(byte, classes) {
  const least = 1 / classes;
  return Math.min(1, Math.max(0, (byte / 255 - least) / (1 - least)));
}

/** Return the colour of a value between two, through the paper where the range holds zero. */
export function valueColour(value, low, high, paper) {
  if (low < 0 && high > 0) {
    const most = Math.max(-low, high);
    const t = Math.min(1, Math.abs(value) / most);
    return mixed(paper, value < 0 ? CLASSES[3] : CLASSES[0], 0.1 + 0.8 * t);
  }
  const t = high > low ? (value - low) / (high - low) : 0.5;
  return mixed(paper, CLASSES[0], 0.1 + 0.85 * Math.min(1, Math.max(0, t)));
}

/** Return a colour of four bytes for each place: by class, by confidence or by value. */
export function painted(arrays, by, classes, theme, count) {
  const paper = PAPER[theme];
  const rgba = new Uint8Array(4 * count).fill(255);
  const range = arrays.value ? rangeOf(arrays.value) : null;
  for (let i = 0; i < count; i += 1) {
    let colour;
    if (arrays.value) {
      colour = valueColour(arrays.value[i], range[0], range[1], paper);
    } else {
      const t = by === "confidence" ? 0.12 + 0.8 * certainty(arrays.confidence[i], classes) : 0.62;
      colour = mixed(paper, classColour(arrays.classes[i]), t);
    }
    rgba.set(colour, 4 * i);
  }
  return rgba;
}

/** Return colours of cells of two networks: where they disagree, or how far apart they are. */
export function pairColours(arrays, by, theme) {
  const { classes, otherClasses, differences } = arrays;
  const paper = PAPER[theme];
  const most = rangeOf(differences)[1] || 1;
  const rgba = new Uint8Array(4 * classes.length).fill(255);
  for (let i = 0; i < classes.length; i += 1) {
    const isSame = classes[i] === otherClasses[i];
    const strength = by === "distance" ? 0.9 * (differences[i] / most) : isSame ? 0.1 : 0.8;
    rgba.set(mixed(paper, by === "distance" || isSame ? CLASSES[0] : CLASSES[3], strength), 4 * i);
  }
  return rgba;
}

/** Return the least and the largest of some numbers. */
export function rangeOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** Return a colour as CSS writes it. */
export function css(colour, alpha = 1) {
  return alpha === 1 ? `rgb(${colour.join(" ")})` : `rgb(${colour.join(" ")} / ${alpha})`;
}

/** Return light or dark, as the page is. */
export function themeOf() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
