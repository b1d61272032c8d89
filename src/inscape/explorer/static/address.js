// The address: the state of every view is in it, so that it can be kept, sent and gone back to.

/** What the page shows when the address says nothing. */
export const START = Object.freeze({
  tab: "slice", kind: "", rows: [], seed: 0, u: null, v: null, h: null,
  colour: "class", edges: "plain", points: true, line: null, at: null, step: -1,
  fn: "", preset: "", paper: "",
});

const NUMBERS = ["u", "v", "h", "seed", "step"];
const LISTS = ["rows", "line", "at"];
const WORDS = ["tab", "kind", "colour", "edges", "fn", "preset", "paper"];

/** Return the text after # of a state: only what is not at its start. */
export function toAddress(state) {
  const parts = new URLSearchParams();
  for (const [name, start] of Object.entries(START)) {
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
  const state = { ...START };
  for (const name of NUMBERS) {
    const value = Number(parts.get(name));
    if (parts.has(name) && parts.get(name) !== "" && Number.isFinite(value)) state[name] = value;
  }
  for (const name of LISTS) {
    const values = (parts.get(name) ?? "").split("_").map(Number);
    if (parts.get(name) && values.every(Number.isFinite)) state[name] = values;
  }
  for (const name of WORDS) if (parts.get(name)) state[name] = parts.get(name).slice(0, 200);
  if (parts.has("points")) state.points = parts.get("points") === "true";
  if (state.line && state.line.length !== 4) state.line = null;
  if (state.at && state.at.length !== 2) state.at = null;
  if (state.h !== null && !(state.h > 0)) state.h = null;
  return state;
}
