// What the labs and the papers give away as data and as Python. Pure functions.

import { quoted } from "./copy.js";

/** Return a truth table as CSV: the inputs, the value, and the coefficient of the set of these inputs. */
export function tableCsvOf({ n, bits, spectrum }) {
  const names = Array.from({ length: n }, (_, k) => `x${k + 1}`);
  const known = new Map(spectrum.map((each) => [each.set, each.coefficient]));
  const rows = [...bits].map((bit, k) => {
    const inputs = k.toString(2).padStart(n, "0");
    const set = names.filter((_, i) => inputs[i] === "1").join(" ");
    return [...inputs, bit, known.get(set || "1")].join(",");
  });
  return [[...names, "value", "coefficient"].join(","), ...rows].join("\n") + "\n";
}

/** Return Python that finds the swaps and the spectrum of a function, and builds its network. */
export function booleanPythonOf({ bits, weights }) {
  return [
    "from inscape.boolean import fourier, from_bits, swaps, wide_network",
    "",
    `table = from_bits([${[...bits].join(", ")}])`,
    "print(swaps(table), fourier(table))",
    `network = wide_network(table, [${weights.join(", ")}])`,
    "print(network)",
    'fourier(table).save("spectrum.pdf")',
    "",
  ].join("\n");
}

/** Return Python that draws the figure of an experiment from its records. */
export function paperPythonOf(name) {
  return [
    "from pathlib import Path",
    "",
    "from inscape.lab.experiment_outcome import stored_outcome",
    "from inscape.lab.store import Store",
    "",
    `outcome = stored_outcome("${name}", Store(Path("results"), mends=False))`,
    "for judgement in outcome.judgements:",
    "    print(judgement.verdict, judgement.claim.says)",
    `outcome.figure().savefig("${name.replace("/", "-")}.pdf")`,
    "",
  ].join("\n");
}

/** Return the tables and claims of an entry as CSV. */
export function tablesCsvOf({ tables, claims, values }) {
  const rows = [["table", "row", "column", "ours", "interval", "paper", "verdict"]];
  for (const { title, columns, rows: own } of tables) {
    for (const { name, cells } of own) {
      cells.forEach((cell, k) => {
        if (!cell) return;
        const { given, ours = "", interval = "", published = "", verdict = "" } = cell;
        rows.push([title, name, columns[k], given ?? ours, interval, published, verdict]);
      });
    }
  }
  for (const claim of [...claims, ...values]) {
    const { says, ours = "", interval = "", published = "", verdict } = claim;
    rows.push(["claim", says, "", ours, interval, published, verdict]);
  }
  return rows.map((row) => row.map((cell) => quoted(String(cell))).join(",")).join("\n") + "\n";
}
