// The papers: each table and figure beside ours; figures are drawn from the records when asked for.

import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { themeOf } from "../colours.js";
import { paperPythonOf, tablesCsvOf } from "../lab_copies.js";
import { TakeAlong } from "../take_along.js";

/** The view, as all.js lists it. */
export const view = {
  name: "papers", title: "Papers", isThere: (session) => Boolean(session.views?.papers), isApart: true,
  isOffline: false, View: Papers,
  fields: { paper: { kind: "word", start: "" }, item: { kind: "word", start: "" } },
};

const MARKS = {
  reproduced: "✓", "not reproduced": "✗", inconclusive: "≈", "no verdict": "–", "not run": "○",
  "by construction": "=",
};

/** Ask for facts whenever what is asked changes. */
function useFacts(api, name, asked) {
  const [answer, setAnswer] = useState(null);
  const key = JSON.stringify([name, asked]);
  useEffect(() => {
    if (!asked) return undefined;
    const stop = new AbortController();
    setAnswer(null);
    api.post(name, asked, stop.signal).then(
      ({ facts, arrays }) => setAnswer({ key, facts, arrays }),
      (error) => error.name === "AbortError" || setAnswer({ key, reason: error.message }),
    );
    return () => stop.abort();
  }, [key]);
  return answer?.key === key ? answer : null;
}

function Papers({ api, session, state, update, theme }) {
  const { papers, records } = session.views.papers;
  const paper = papers.find((each) => each.name === state.paper)?.name ?? papers[0].name;
  const answer = useFacts(api, "papers/paper", { paper });
  const items = answer?.facts?.items ?? [];
  const run = items.filter((item) => item.run);
  const item = run.find((each) => each.item === state.item)?.item ?? run[0]?.item ?? "";
  return html`<div class="view papers">
    <section class="stage" aria-label="Papers">
      <div class="bar"><label>Paper <select id="paper" value=${paper}
        onChange=${(event) => update({ paper: event.target.value, item: "" }, true)}>
        ${papers.map((each) => html`<option value=${each.name}>${each.title}</option>`)}</select></label></div>
      ${!records && html`<p class="refused" id="no-records">There are no records here: run inscape reproduce, or name their
        folder with --results.</p>`}
      ${answer?.reason && html`<p class="refused">${answer.reason}</p>`}
      ${item && html`<${Item} api=${api} paper=${paper} item=${item} theme=${theme} key=${`${paper}/${item}`} />`}
    </section>
    <aside class="side"><section class="card" aria-labelledby="entries"><h2 id="entries">Tables and figures</h2>
      ${answer?.facts && html`<p class="quiet">${answer.facts.authors.join(", ")}. ${answer.facts.venue}</p>`}
      <ul class="entries" id="items">${items.map((each) => html`<li>${each.run
        ? html`<button aria-current=${each.item === item ? "true" : null}
          onClick=${() => update({ item: each.item }, true)}><b>${each.kicker}</b> ${each.title}</button>`
        : html`<span class="quiet"><b>${each.kicker}</b> ${each.title}: no experiment yet</span>`}</li>`)}</ul>
    </section></aside>
  </div>`;
}

function Item({ api, paper, item, theme }) {
  const answer = useFacts(api, "papers/item", { paper, item });
  if (answer?.reason) return html`<p class="refused">${answer.reason}</p>`;
  if (!answer) return html`<p class="quiet">Reading the records …</p>`;
  const { facts } = answer;
  const drawn = (format) => async () => (await api.as("c").post("papers/figure", { paper, item, format })).arrays.file;
  const figures = facts.hasFigure ? ["svg", "pdf", "png"].map((format) => ({
    id: format, text: format.toUpperCase(), name: `${paper}-${item}.${format}`, make: drawn(format),
  })) : [];
  const files = [...figures, {
    id: "csv", text: "CSV", name: `${paper}-${item}.csv`, make: () => tablesCsvOf(facts),
  }];
  return html`<article class="card paper-item">
    <p class="quiet">${facts.kicker}</p>
    <h2 id="item-title">${facts.title}</h2>
    <p id="item-state">${facts.state}</p>
    <p class="tally">${facts.tally.map(([verdict, count]) => html`<${Mark} verdict=${verdict} /> ${count} ${verdict} `)}</p>
    ${facts.hasFigure && html`<${Figure} api=${api} paper=${paper} item=${item} theme=${theme} facts=${facts} />`}
    ${facts.tables.map((table) => html`<${Table} table=${table} />`)}
    ${facts.conclusions.length > 0 && html`<h3>What the records show</h3><ul>${facts.conclusions.map((each) => html`<li>${each}</li>`)}</ul>`}
    ${facts.claims.length > 0 && html`<h3>Claims</h3><${Claims} claims=${facts.claims} />`}
    ${facts.values.length > 0 && html`<details><summary>How each number of the table compares</summary><${Claims} claims=${facts.values} /></details>`}
    ${facts.departures.length > 0 && html`<h3>Departures from the paper at this scale</h3><ul>${facts.departures.map((each) => html`<li>${each}</li>`)}</ul>`}
    ${facts.notes.length > 0 && html`<h3>Notes</h3><ul>${facts.notes.map((each) => html`<li>${each}</li>`)}</ul>`}
    <p class="quiet">Repeat it: <code>${facts.command}</code></p>
    <p class="quiet">${Object.entries(facts.facts).map(([name, value]) => `${name} ${value}`).join(" · ")}</p>
  </article>
  <${TakeAlong} id="paper" files=${files} code=${paperPythonOf(`${paper}/${item}`)} />`;
}

function Mark({ verdict }) {
  return html`<span class=${`mark ${verdict.replaceAll(" ", "-")}`} role="img" aria-label=${verdict} title=${verdict}>${MARKS[verdict] ?? "·"}</span>`;
}

function Figure({ api, paper, item, theme, facts }) {
  const answer = useFacts(api, "papers/figure", { paper, item, dark: themeOf() === "dark" });
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (!answer?.facts?.drawn) return undefined;
    const made = URL.createObjectURL(new Blob([answer.arrays.file], { type: "image/svg+xml" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [answer, theme]);
  if (answer && !answer.facts?.drawn) return answer.reason ? html`<p class="refused">${answer.reason}</p>` : null;
  return html`<figure><div class="drawn">${address ? html`<img id="item-figure" src=${address} alt=${`${facts.title}. ${facts.caption}`} />` : html`<p class="quiet">Drawing …</p>`}</div>
    <figcaption class="quiet">${facts.drawn} ${facts.caption}</figcaption></figure>`;
}

function Table({ table }) {
  return html`<div class="wide" tabindex="0" role="region" aria-label=${table.title || "Table"}>${table.title && html`<h3>${table.title}</h3>`}
    <table><thead><tr><td></td>${table.columns.map((each) => html`<th>${each}</th>`)}</tr></thead>
    <tbody>${table.rows.map((row) => html`<tr><th>${row.name}</th>${row.cells.map((cell) => html`<td>${cell && (cell.given
      ?? html`<b>${cell.ours || "–"}</b> <${Mark} verdict=${cell.verdict} /><br /><span class="quiet">${cell.interval}<br />paper: ${cell.published}</span>`)}</td>`)}</tr>`)}</tbody></table>
    <p class="quiet">${table.notes.join(" ")}</p></div>`;
}

function Claims({ claims }) {
  return html`<ul class="claims">${claims.map((claim) => html`<li><${Mark} verdict=${claim.verdict} /> ${claim.says}
    ${claim.ours && html` <b>${claim.ours}</b> <span class="quiet">${claim.interval}</span>`}
    ${claim.reason && html`<br /><span class="quiet">${claim.reason}</span>`}</li>`)}</ul>`;
}
