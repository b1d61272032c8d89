// The view of a training: the slice at a recorded step, a slider, and curves over all steps.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { css, LAYERS } from "../colours.js";
import { drawnCurves, placed, stepAt } from "../curves.js";
import { number } from "../facts.js";
import { give } from "../files.js";
import { coarseFirst, frameKey, spaced } from "../steps.js";
import { halves } from "../window.js";
import { Slice, planeAsked } from "./slice.js";

const FRAME = 100; // milliseconds of a frame: ten a second
const AT_ONCE = 4; // steps of the curves that are asked at a time
const FRAMES = 121; // recorded steps that are played, at most
const REST = 9; // frames that the last step stays

/** The view, as main.js lists it. */
export const view = {
  name: "training", title: "Training", isThere: (session) => session.steps.length > 1,
  isOffline: false, View: Training, fields: { step: { kind: "number", start: -1 } },
};

function Training(props) {
  const { api, session, state, update } = props;
  const { steps } = session;
  const step = steps.includes(state.step) ? state.step : steps[steps.length - 1];
  const pane = useRef(null);
  const film = useFilm(api, pane, steps, update, step);
  const curves = useCurves(api, spaced(steps, FRAMES));
  const seen = useMemo(() => ({ network: "first", step }), [step]);
  const choose = (next) => {
    film.stop();
    update({ step: next });
  };
  const below = html`<${Player} ...${{ steps, step, choose, film }} />`;
  const beside = html`<${Curves} ...${{ curves, steps, step, choose, session }} />`;
  const saved = html`<${Film} ...${{ api, session, state, pane }} />`;
  return html`<${Slice} ...${props} seen=${seen} below=${below} beside=${beside} saved=${saved} frame=${film.frame}
    onPane=${(made) => { pane.current = made; }} />`;
}

/** Precompute the window at every step, and play the steps at ten frames a second. */
function useFilm(api, pane, steps, update, step) {
  const frames = useRef(new Map());
  const stop = useRef(null);
  const [ready, setReady] = useState(null);
  const [isPlaying, setIsPlaying] = useState(false);
  const [reason, setReason] = useState("");
  const played = spaced(steps, FRAMES);
  const now = useRef(step);
  now.current = step;

  const end = () => {
    stop.current?.abort();
    stop.current = null;
    setReady(null);
    setIsPlaying(false);
  };
  const askedAt = (shown, at) => ({
    ...shown.asked, centre: [shown.window.u, shown.window.v], half: halves(shown.window, shown.size),
    network: "first", step: at,
  });
  const prepare = async (shown, signal) => {
    const { colour } = shown.settings;
    const isScaled = colour === "pattern" || colour === "map";
    let like = null; // the last step, whose colours those of the others match
    let count = 0;
    for (const at of [...played].reverse()) {
      const asked = askedAt(shown, at);
      const known = frames.current.get(frameKey(asked));
      if (!known || (isScaled && (like === null || !known.rgb?.[colour]))) {
        if (frames.current.size > 2 * FRAMES) frames.current.clear();
        const frame = await api.post("cells", { ...asked, seconds: 20 }, signal);
        const { view } = frame.facts;
        if (isScaled) {
          const { arrays } = await api.post("colours", { view, by: colour, like }, signal);
          frame.rgb = { [colour]: arrays.rgb };
          like ??= view;
        }
        frames.current.set(frameKey(asked), frame);
      }
      count += 1;
      setReady([count, played.length]);
    }
  };
  const play = async () => {
    if (stop.current) {
      end();
      return;
    }
    const control = new AbortController();
    stop.current = control;
    setReason("");
    try {
      await prepare(pane.current, control.signal);
    } catch (error) {
      if (error.name !== "AbortError") setReason(error.message);
      end();
      return;
    }
    if (control.signal.aborted) return;
    setReady(null);
    setIsPlaying(true);
    let place = played.indexOf(now.current);
    if (place < 0 || place === played.length - 1) place = -1;
    let due = performance.now();
    while (!control.signal.aborted) {
      place += 1;
      if (place >= played.length + REST) place = 0;
      if (place < played.length) update({ step: played[place] });
      due = Math.max(due + FRAME, performance.now());
      await new Promise((resolve) => { setTimeout(resolve, due - performance.now()); });
    }
  };
  useEffect(() => end, []);
  return {
    frame: (asked) => frames.current.get(frameKey(asked)), play, stop: end, ready, isPlaying, reason,
  };
}

/** Ask for the curves, a few steps at a time, coarse first. */
function useCurves(api, steps) {
  const [rows, setRows] = useState(() => new Map());
  const [reason, setReason] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    (async () => {
      const order = coarseFirst(steps);
      for (let k = 0; k < order.length; k += AT_ONCE) {
        const asked = order.slice(k, k + AT_ONCE).sort((a, b) => a - b);
        const { facts, arrays } = await api.post("training/curves", { steps: asked }, stop.signal);
        if (facts.kernelReason) setReason(facts.kernelReason);
        setRows((known) => {
          const next = new Map(known);
          facts.steps.forEach((step, i) => next.set(step,
            Object.fromEntries(Object.entries(arrays).map(([name, values]) => [name, values[i]]))));
          return next;
        });
      }
    })().catch((error) => error.name === "AbortError" || setReason(error.message));
    return () => stop.abort();
  }, []);
  return { rows, reason };
}

function Player({ steps, step, choose, film }) {
  const place = steps.indexOf(step);
  const text = film.ready ? `Preparing ${film.ready[0]} of ${film.ready[1]}` : film.isPlaying ? "Pause" : "Play";
  return html`<div class="slider">
    <button id="play" aria-pressed=${film.isPlaying ? "true" : "false"} onClick=${film.play}>${text}</button>
    <input type="range" id="step" min="0" max=${steps.length - 1} step="1" value=${place}
      aria-label="Recorded step" aria-valuetext=${`step ${step}`}
      onInput=${(event) => choose(steps[Number(event.target.value)])} />
    <output for="step" id="step-text">step ${step} of ${steps[steps.length - 1]}</output>
  </div>
  ${film.reason && html`<p class="refused" role="alert">${film.reason}</p>`}`;
}

const PLOTS = [
  { title: "Loss", names: [["loss", "these examples"], ["trainLoss", "training examples"]] },
  { title: "Tangent kernel: cosine with both ends", names: [["fromStart", "the first step"], ["fromEnd", "the last step"]] },
  { title: "Smoothness: mean norm of the gradient", names: [["gradientNorm", "these examples"]] },
];

function Curves({ curves, steps, step, choose, session }) {
  const known = [...curves.rows.keys()].sort((a, b) => a - b);
  const facts = session.views.training;
  const here = curves.rows.get(step);
  return html`<section class="card curves" aria-labelledby="curves">
    <h2 id="curves">Over the training</h2>
    ${PLOTS.map(({ title, names }) => {
      const seen = names.filter(([name]) => name !== "trainLoss" || facts.split === "test");
      const drawn = drawnCurves(seen.map(([name]) => ({
        steps: known, values: known.map((each) => curves.rows.get(each)[name]),
      })), steps);
      if (!drawn) return null;
      const said = seen.map(([name, text]) => `${text}: ${number(here?.[name] ?? null, 3)}`).join(", ");
      return html`<figure><figcaption><h3>${title}</h3>
          ${seen.map(([name, text], k) => html`<span class="key"><i style=${{ background: css(LAYERS[k]) }}></i>
            ${seen.length > 1 || name === "gradientNorm" ? `${text} ` : ""}<b id=${`now-${name}`}>${number(here?.[name] ?? null, 3)}</b></span>`)}</figcaption>
        <svg class="plot" viewBox=${`0 0 ${drawn.width} ${drawn.height}`} role="img" aria-label=${`${title} at step ${step}: ${said}`}
          onClick=${(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            choose(stepAt(((event.clientX - box.left) / box.width) * drawn.width, steps));
          }}>
          ${drawn.up.map((tick) => html`<line class="axis" x1=${drawn.left} x2=${drawn.right} y1=${tick.at} y2=${tick.at} />
            <text x=${drawn.left - 6} y=${tick.at + 4} text-anchor="end">${tick.text}</text>`)}
          <line class="now" x1=${placed(step, steps)} x2=${placed(step, steps)} y1=${drawn.top} y2=${drawn.bottom} />
          ${drawn.paths.map((path, k) => html`<path d=${path} stroke=${css(LAYERS[k])} />`)}
        </svg></figure>`;
    })}
    <p class="quiet">${known.length} of ${Math.min(steps.length, FRAMES)} steps measured${facts.loss ? `, ${facts.loss.replace("_", " ")} on ${facts.rows} examples` : ""};
      kernel and gradient at ${facts.points} of them.${curves.reason ? ` ${curves.reason}` : ""}</p>
  </section>`;
}

/** Save the steps of this window as a moving picture. */
function Film({ api, session, state, pane }) {
  const [said, setSaid] = useState("");
  const stop = useRef(null);
  const save = async (format) => {
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    const shown = pane.current;
    setSaid("Drawing the frames …");
    const listening = api.as("f");
    try {
      const { facts, arrays } = await listening.post("training/film", {
        ...planeAsked(session, state), centre: [shown.window.u, shown.window.v],
        half: halves(shown.window, shown.size), format, colour: state.colour, edges: state.edges,
      }, control.signal);
      give(facts.name, arrays.file, { gif: "image/gif", webp: "image/webp", mp4: "video/mp4" }[format]);
      setSaid(`${facts.name} is saved: ${facts.frames} steps, ${Math.ceil(facts.bytes / 1000)} kB.`);
    } catch (error) {
      if (error.name !== "AbortError") setSaid(error.message);
    }
  };
  useEffect(() => () => stop.current?.abort(), []);
  if (!session.exact) return null;
  return html`<div><p class="quiet">The training of this window, as a film:</p><div class="bar">
    ${["gif", "webp", "mp4"].map((format) => html`<button id=${`film-${format}`} onClick=${() => save(format)}>${format === "webp" ? "WebP" : format.toUpperCase()}</button>`)}</div>
    <p class="quiet" role="status" id="film-said">${said}</p></div>`;
}
