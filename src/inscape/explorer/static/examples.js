// Examples: small pictures to choose a plane by, with the mouse, by dragging or from the keyboard.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";

const SHOWN = 60;

/** A picture of an example, or nothing where examples are no images. */
export function Thumb({ pixels, shape, large = false, title = "" }) {
  const canvas = useRef(null);
  useEffect(() => {
    if (!canvas.current || !shape) return;
    const [height, width, channels] = shape;
    const image = new ImageData(width, height);
    for (let i = 0; i < width * height; i += 1) {
      for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = pixels[channels * i + (channels === 3 ? c : 0)];
      image.data[4 * i + 3] = 255;
    }
    canvas.current.width = width;
    canvas.current.height = height;
    canvas.current.getContext("2d").putImageData(image, 0, 0);
  }, [pixels, shape]);
  if (!shape) return null;
  return html`<canvas ref=${canvas} class=${large ? "thumb large" : "thumb"} role="img" aria-label=${title}></canvas>`;
}

/** Load pictures of some examples. */
export function useThumbs(api, rows, train = false) {
  const [known, setKnown] = useState(null);
  const key = JSON.stringify([rows, train]);
  useEffect(() => {
    let isOver = false;
    if (!rows.length) return undefined;
    const client = `${api.client}${train ? "t" : "m"}${rows.length}`;
    api.post("examples", { rows, train, client }).then(({ facts, arrays }) => {
      if (isOver) return;
      const size = facts.shape ? facts.shape.reduce((a, b) => a * b, 1) : 0;
      setKnown({ key, thumbs: facts.rows.map((row, k) => ({
        row, label: facts.labels[k], shape: facts.shape,
        pixels: size ? arrays.pixels.subarray(k * size, (k + 1) * size) : null,
      })) });
    }).catch(() => {});
    return () => { isOver = true; };
  }, [key]);
  return known?.key === key ? known.thumbs : [];
}

/** The three examples of the plane, and those to put in their place. */
export function Examples({ api, session, state, update }) {
  const rows = state.rows.length === 3 ? state.rows : session.rows;
  const [slot, setSlot] = useState(0);
  const [from, setFrom] = useState(0);
  const [over, setOver] = useState(-1);
  const chosen = useThumbs(api, rows);
  const shown = Array.from({ length: Math.min(SHOWN, session.examples - from) }, (_, k) => from + k);
  const strip = useThumbs(api, shown);
  const put = (place, row) => {
    if (rows.includes(row) || session.offline) return;
    const next = rows.map((known, k) => (k === place ? row : known));
    update({ rows: next, u: null, v: null, h: null, line: null, at: null }, true);
    setSlot((place + 1) % 3);
  };
  return html`<section class="card" aria-labelledby="examples">
    <h2 id="examples">The plane through three examples</h2>
    <div class="slots">${rows.map((row, k) => html`
      <button class=${`slot${over === k ? " over" : ""}`} id=${`slot-${"abc"[k]}`}
        aria-pressed=${slot === k ? "true" : "false"} onClick=${() => setSlot(k)}
        onDragOver=${(event) => { event.preventDefault(); setOver(k); }}
        onDragLeave=${() => setOver(-1)}
        onDrop=${(event) => { event.preventDefault(); setOver(-1); put(k, Number(event.dataTransfer.getData("text/plain"))); }}>
        <strong>${"ABC"[k]}</strong>
        ${chosen[k] && html`<${Thumb} ...${chosen[k]} large=${true} title=${`example ${row}`} />`}
        <span>${chosen[k]?.label ? `${chosen[k].label}, ` : ""}no. ${row}</span>
      </button>`)}</div>
    ${!session.offline && html`<p class="quiet">Drag an example onto A, B or C, or choose a place and then an example.</p>`}
    ${!session.offline && html`<div class="strip" id="strip">${strip.map((each) => html`
      <button draggable="true" disabled=${rows.includes(each.row)} title=${`example ${each.row}`}
        onDragStart=${(event) => event.dataTransfer.setData("text/plain", String(each.row))}
        onClick=${() => put(slot, each.row)}>
        <${Thumb} ...${each} title=${`example ${each.row}`} />
        <span>${each.shape ? each.label : `${each.row}: ${each.label}`}</span>
      </button>`)}</div>`}
    ${!session.offline && html`<div class="bar">
      <button disabled=${from === 0} onClick=${() => setFrom(Math.max(0, from - SHOWN))}>Earlier</button>
      <button disabled=${from + SHOWN >= session.examples} onClick=${() => setFrom(from + SHOWN)}>Later</button>
    </div>`}
  </section>`;
}
