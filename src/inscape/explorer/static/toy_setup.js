// The setup of the toy lab: what is chosen beyond a preset, as text for the address; points of one's
// own, from CSV and from the address. Pure functions.

/** Return the setup that a preset, the changes to it and one's own points make. */
export function setupOf(start, preset, changes, own) {
  const setup = { ...start, ...(preset?.setup ?? {}), ...changes };
  if (setup.data === "own" && own.length) setup.rows = own;
  return setup;
}

/** Return changes as text: `hidden:3-3;lr:0.01`. */
export function changesText(changes) {
  return Object.entries(changes)
    .map(([name, value]) => `${name}:${Array.isArray(value) ? value.join("-") : value}`)
    .join(";");
}

/** Return the changes of a text; whatever is no setting, or not of its type, is left out. */
export function changesOf(text, start) {
  const changes = {};
  for (const part of text.split(";")) {
    const at = part.indexOf(":");
    const [name, value] = [part.slice(0, at), part.slice(at + 1)];
    if (at < 1 || !Object.hasOwn(start, name) || name === "rows") continue;
    if (Array.isArray(start[name])) {
      const numbers = value === "" ? [] : value.split("-").map(Number);
      if (numbers.every((each) => Number.isInteger(each) && each > 0)) changes[name] = numbers;
    } else if (typeof start[name] === "number") {
      if (value !== "" && Number.isFinite(Number(value))) changes[name] = Number(value);
    } else if (typeof start[name] === "boolean") changes[name] = value === "true";
    else changes[name] = value;
  }
  return changes;
}

/** Return changes with one more, without those that the preset has anyway. */
export function changed(changes, name, value, base) {
  const next = { ...changes, [name]: value };
  if (JSON.stringify(base[name]) === JSON.stringify(value)) delete next[name];
  return next;
}

/** Return points [x1, x2, label] of a flat list of numbers. */
export function rowsOf(numbers) {
  const rows = [];
  for (let k = 0; k + 2 < numbers.length; k += 3) rows.push(numbers.slice(k, k + 3));
  return rows;
}

/** Return points as a flat list of numbers of few digits, for the address. */
export function flatOf(rows) {
  return rows.flatMap(([x, y, label]) => [+x.toPrecision(5), +y.toPrecision(5), label]);
}

/** Return the widths of the hidden layers that a text names, null if it is none. */
export function widthsOf(text) {
  const parts = text.split(/[\s,x×-]+/).filter((part) => part !== "");
  const widths = parts.map(Number);
  const isGood = widths.every((width) => Number.isInteger(width) && width >= 1 && width <= 256);
  return isGood && widths.length <= 6 ? widths : null;
}

/** Read a CSV of two inputs and a label; return { rows, labels } or { error }. */
export function readCsv(text, most = 1000) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const table = lines.map((line) => line.split(/[,;\t]/).map((cell) => cell.trim()));
  const isNumber = (cell) => cell !== "" && Number.isFinite(Number(cell));
  if (table.length && !table[0].slice(0, 2).every(isNumber)) table.shift();
  const wrong = table.findIndex((cells) => cells.length !== 3 || !cells.slice(0, 2).every(isNumber));
  if (wrong >= 0) {
    return { error: `A row must be two numbers and a label, found ${JSON.stringify(table[wrong].join(","))}: mend it.` };
  }
  if (table.length < 2 || table.length > most) {
    return { error: `A file must have 2 to ${most} rows, found ${table.length}: take others.` };
  }
  const names = [...new Set(table.map((cells) => cells[2]))];
  const isClasses = names.length <= 8;
  if (!isClasses && !names.every(isNumber)) {
    return { error: `Labels must be at most 8 classes, or numbers, found ${names.length} names: take fewer.` };
  }
  const sorted = names.every(isNumber) ? names.sort((a, b) => a - b) : names.sort();
  const rows = table.map(([x, y, label]) => [
    Number(x), Number(y), isClasses ? sorted.indexOf(label) : Number(label),
  ]);
  return { rows, labels: isClasses ? "classes" : "numbers", names: isClasses ? sorted : [] };
}

/** Return the points without the one that is nearest to a place. */
export function withoutNearest(rows, [u, v]) {
  let best = -1;
  let least = Infinity;
  rows.forEach(([x, y], k) => {
    const far = Math.hypot(x - u, y - v);
    if (far < least) [best, least] = [k, far];
  });
  return rows.filter((_, k) => k !== best);
}

/** Return Python that trains the same network, and cuts its plane. */
export function pythonOfToy(setup, start, steps) {
  const python = (value) => {
    if (Array.isArray(value)) return `(${value.map(python).join(", ")}${value.length === 1 ? "," : ""})`;
    if (typeof value === "boolean") return value ? "True" : "False";
    return typeof value === "string" ? `"${value}"` : String(value);
  };
  const chosen = Object.entries(setup)
    .filter(([name, value]) => JSON.stringify(start[name]) !== JSON.stringify(value))
    .map(([name, value]) => `    ${name}=${python(value)},`);
  return [
    "import inscape",
    "from inscape.explorer.toy.run import trained",
    "",
    "run = trained(",
    `    updates=${steps},`,
    ...chosen,
    ")",
    "print(run.loss, run.measured())",
    "regions = inscape.regions.plane_regions(run.model, run.points.x)",
    "print(regions)",
    "",
  ].join("\n");
}

/** Return the history of a training as CSV. */
export function historyCsv(history) {
  const names = [...new Set(history.flatMap((frame) => Object.keys(frame.measures)))];
  const rows = history.map((frame) => [
    frame.step, frame.loss ?? "", ...names.map((name) => frame.measures[name] ?? ""),
  ].join(","));
  return [["update", "loss", ...names].join(","), ...rows].join("\n") + "\n";
}
