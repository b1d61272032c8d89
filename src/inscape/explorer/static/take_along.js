// The card with which every view gives away what it shows: figures, data, and Python.

import { html, useState } from "./vendor/preact-htm.js";
import { give } from "./files.js";

const TYPES = {
  svg: "image/svg+xml", pdf: "application/pdf", png: "image/png", csv: "text/csv", html: "text/html",
};

/** Return the type of a file, by its name. */
export function typeOf(name) {
  return TYPES[name.split(".").at(-1)] ?? "application/octet-stream";
}

/**
 * Buttons that save `files`, and the `code` that makes the same. A file is
 * `{ id, text, name, make, isOff }`; `make` returns its content, perhaps later, or null where there
 * is nothing to save yet; what goes wrong is said.
 */
export function TakeAlong({ id, files, code, children = null }) {
  const [said, setSaid] = useState("");
  const save = async ({ name, make }) => {
    setSaid(`Making ${name} …`);
    try {
      const content = await make();
      if (content) give(name, content, typeOf(name));
      setSaid(content ? `${name} is saved.` : "There is nothing to save yet.");
    } catch (error) {
      setSaid(error.message);
    }
  };
  const copy = () => navigator.clipboard?.writeText(code).then(
    () => setSaid("The code is in the clipboard."), () => setSaid("Copy the code below."));
  return html`<section class="card" aria-labelledby=${`${id}-copies`}><h2 id=${`${id}-copies`}>Take it along</h2>
    <div class="bar">
      ${files.map((file) => html`<button id=${`${id}-${file.id}`} disabled=${Boolean(file.isOff)}
        title=${file.title} onClick=${() => save(file)}>${file.text}</button>`)}
      <button id=${`${id}-python`} onClick=${copy}>Python</button>
    </div>
    <p class="quiet" role="status" id=${`${id}-said`}>${said}</p>
    ${children}
    <details><summary>Python that makes the same</summary><pre id=${`${id}-code`}>${code}</pre></details>
  </section>`;
}
