// The page: tabs, the state in the address, and the view that is chosen.

import { html, render, useEffect, useState } from "./vendor/preact-htm.js";
import { fromAddress, register, toAddress } from "./address.js";
import { Api } from "./api.js";
import { VIEWS } from "./views/all.js";

for (const view of VIEWS) register(view.fields);

/** Show the page for a session and whoever answers for it. */
export function start(root, api, session) {
  document.title = `${session.title} – Inscape explorer`;
  render(html`<${Page} api=${api} session=${session} />`, root);
}

/** Keep the state in the address: a move replaces the entry, a choice adds one to go back to. */
function useAddress() {
  const [state, setState] = useState(() => fromAddress(location.hash));
  useEffect(() => {
    const onBack = () => setState(fromAddress(location.hash));
    addEventListener("popstate", onBack);
    return () => removeEventListener("popstate", onBack);
  }, []);
  const update = (patch, push = false) => {
    setState((before) => {
      const next = { ...before, ...patch };
      const address = `#${toAddress(next)}`;
      clearTimeout(useAddress.timer);
      if (push) history.pushState(null, "", address);
      else useAddress.timer = setTimeout(() => history.replaceState(null, "", address), 150);
      return next;
    });
  };
  return [state, update];
}

function Page({ api, session }) {
  const [state, update] = useAddress();
  const [theme, setTheme] = useState("auto");
  const tabs = VIEWS.filter((view) => view.isThere(session) && (view.isOffline || !session.offline));
  const tab = tabs.find((each) => each.name === state.tab) ?? tabs[0];
  const choose = (value) => {
    document.documentElement.dataset.theme = value;
    setTheme(value);
    dispatchEvent(new Event("themechange"));
  };
  return html`
    <header class="top">
      <p class="wordmark">Inscape</p>
      <nav class="tabs" aria-label="Views">
        ${tabs.map((each) => html`
          <button id=${`tab-${each.name}`} aria-current=${each === tab ? "page" : null}
            onClick=${() => update({ tab: each.name }, true)}>${each.title}</button>`)}
      </nav>
      <label class="quiet">Colours <select id="theme" value=${theme}
        onChange=${(event) => choose(event.target.value)}>
        ${["auto", "light", "dark"].map((name) => html`<option value=${name}>${name}</option>`)}
      </select></label>
    </header>
    <main>
      <div class="head">
        <h1 id="title">${tab.isApart ? tab.title : session.title}</h1>
        ${!tab.isApart && html`<p class="quiet">on ${session.data}, ${session.examples} examples${session.offline
          ? "; saved in this file, no server" : ""}</p>`}
      </div>
      <${tab.View} key=${tab.name} api=${api} session=${session} state=${state} update=${update} theme=${theme} />
    </main>`;
}

async function main() {
  const root = document.getElementById("page");
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const client = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");
  const api = new Api(token, client);
  try {
    const session = await api.session();
    root.replaceChildren();
    start(root, api, session);
  } catch (error) {
    root.textContent = `The explorer cannot start: ${error.message}`;
  }
}

if (typeof document !== "undefined" && !document.getElementById("saved")) main();
