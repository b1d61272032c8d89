// The address: the state of every view is in it, so that it can be kept, sent and gone back to.

/** What a field of the state may hold: how it is read from the address, undefined if it cannot be. */
const READERS = {
  number: (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined),
  size: (text) => (Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : undefined),
  numbers: (text, length) => {
    const values = text.split("_").map(Number);
    const isGood = text && values.every(Number.isFinite) && (!length || values.length === length);
    return isGood ? values : undefined;
  },
  word: (text) => text.slice(0, 200) || undefined,
  flag: (text) => (text === "true" || text === "false" ? text === "true" : undefined),
};

/** The fields of the state, and what the page shows when the address says nothing of them. */
const FIELDS = {
  tab: { kind: "word", start: "slice" },
  kind: { kind: "word", start: "" },
  rows: { kind: "numbers", start: [] },
  seed: { kind: "number", start: 0 },
  u: { kind: "number", start: null },
  v: { kind: "number", start: null },
  h: { kind: "size", start: null },
  colour: { kind: "word", start: "class" },
  edges: { kind: "word", start: "plain" },
  points: { kind: "flag", start: true },
  line: { kind: "numbers", start: null, length: 4 },
  at: { kind: "numbers", start: null, length: 2 },
};

/** Add fields of a view: `{ name: { kind, start, length } }`; a name belongs to one view. */
export function register(fields) {
  for (const [name, field] of Object.entries(fields ?? {})) {
    if (FIELDS[name]) throw new Error(`two views have a field ${name}`);
    if (!READERS[field.kind]) throw new Error(`unknown kind of field: ${field.kind}`);
    FIELDS[name] = field;
  }
}

/** Return the state when the address says nothing. */
export function startState() {
  return Object.fromEntries(Object.entries(FIELDS).map(([name, { start }]) => [name, start]));
}

/** Return the text after # of a state: only what is not at its start. */
export function toAddress(state) {
  const parts = new URLSearchParams();
  for (const [name, { start }] of Object.entries(FIELDS)) {
    const value = state[name];
    if (value === undefined || value === null || JSON.stringify(value) === JSON.stringify(start)) {
      continue;
    }
    parts.set(name, Array.isArray(value) ? value.join("_") : String(value));
  }
  return parts.toString();
}

/** Return the state of the text after #; whatever cannot be read stays as at the start. */
export function fromAddress(text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const state = startState();
  for (const [name, { kind, length }] of Object.entries(FIELDS)) {
    const value = parts.has(name) ? READERS[kind](parts.get(name), length) : undefined;
    if (value !== undefined) state[name] = value;
  }
  return state;
}
