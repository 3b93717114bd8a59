/** On each event, and once a minute, fetches the page again and replaces changed regions. Pages are complete without it. */
const MINUTE = 60_000;
/** Events arrive in bursts; one fetch covers a burst. */
const SETTLE_MS = 400;
const MIN_INTERVAL_MS = 2_000;

const main = document.querySelector("main[data-live]");
const state = document.getElementById("live-state");
let timer;
let lastFetch = performance.now();
/** Whether the figures miss events, because the page was hidden. */
let isStale = false;
/** Whether the last fetch failed. */
let isFailing = false;
/** Fetches so far, and the one that is shown: a slow one can end after the next. */
let fetches = 0;
let shown = 0;
/** Each region as the service sent it last: the wallet's script can have changed what it shows. */
const served = new Map();
const remember = (regions) => regions.forEach(({ id, innerHTML }) => void served.set(id, innerHTML));
remember(main.querySelectorAll("[data-region]"));

function schedule() {
  if (document.hidden) return;
  const wait = Math.max(SETTLE_MS, lastFetch + MIN_INTERVAL_MS - performance.now());
  if (timer === undefined) timer = setTimeout(refresh, wait);
}

async function refresh() {
  timer = undefined;
  lastFetch = performance.now();
  isStale = false;
  const number = ++fetches;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) throw new Error(`Status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (number < shown) return;
    shown = number;
    setFailing(false);
    replaceRegions(fresh.querySelector("main"));
    // The wallet's script brings what it shows up to date.
    dispatchEvent(new Event("page-updated"));
  } catch {
    // The next event or minute retries.
    if (number > shown) setFailing(true);
  }
}

function replaceRegions(fresh) {
  const regions = [...main.querySelectorAll("[data-region]")];
  const newer = [...fresh.querySelectorAll("[data-region]")];
  const restoreFocus = rememberFocus();
  if (regions.map(({ id }) => id).join() !== newer.map(({ id }) => id).join()) {
    remember(newer);
    // Leave the elements that the wallet's script works in.
    const kept = [...main.querySelectorAll("[data-keep]")];
    const reopen = regions.map(rememberOpen);
    main.replaceChildren(...fresh.childNodes);
    for (const element of kept) document.getElementById(element.id)?.replaceWith(element);
    for (const restore of reopen) restore();
  } else {
    for (const [i, region] of regions.entries()) replaceRegion(region, newer[i]);
  }
  restoreFocus?.();
}

function replaceRegion(region, newer) {
  if (served.get(region.id) === newer.innerHTML) return;
  remember([newer]);
  const reopen = rememberOpen(region);
  region.replaceChildren(...newer.childNodes);
  reopen();
  if (newer.dataset.announce !== undefined && newer.dataset.announce !== region.dataset.announce) {
    region.dataset.announce = newer.dataset.announce;
    announce(newer.dataset.announce);
  }
}

/** Returns a function that opens what the reader had opened in a region. */
function rememberOpen({ id }) {
  const detailsOf = () => [...(document.getElementById(id)?.querySelectorAll("details") ?? [])];
  const open = detailsOf().map((details) => details.open);
  return () => {
    for (const [i, details] of detailsOf().entries()) details.open = open[i] ?? false;
  };
}

/** Returns a function that restores the focus if its region was replaced, or its form was moved. */
function rememberFocus() {
  const element = document.activeElement;
  const region = element?.closest("[data-region]");
  if (element?.closest("[data-keep]")) return () => element.focus({ preventScroll: true });
  if (!region) return undefined;
  const href = element.getAttribute("href");
  /** A new contract moves the links below it: only one to the same page gets the focus. */
  const alike = () =>
    [
      ...(document.getElementById(region.id)?.querySelectorAll("a, button, summary, [tabindex]") ?? []),
    ].filter((one) => one.getAttribute("href") === href);
  const index = alike().indexOf(element);
  return () => {
    if (!element.isConnected) alike()[index]?.focus({ preventScroll: true });
  };
}

function announce(text) {
  state.hidden = false;
  state.textContent = text;
}

let stream;

/** The state's text, by the stream's `readyState`. */
const STREAM_WORDS = ["Reconnecting", "Live", "Disconnected"];
const showState = () => announce(isFailing ? "Not up to date" : STREAM_WORDS[stream.readyState]);

function setFailing(value) {
  if (isFailing === value) return;
  isFailing = value;
  showState();
}

/** Connects only while the page is visible: browsers allow six connections per site across all tabs. */
function connect() {
  const { live, types } = main.dataset;
  stream = new EventSource(`/live?${live}`);
  stream.addEventListener("open", showState);
  stream.addEventListener("error", showState);
  for (const type of types.split(" ")) stream.addEventListener(type, schedule);
}

function follow() {
  stream?.close();
  if (document.hidden) return;
  connect();
  if (isStale) schedule();
}

setInterval(() => {
  // The browser gives up a stream that the service refused.
  if (stream?.readyState === EventSource.CLOSED) follow();
  schedule();
}, MINUTE);
document.addEventListener("visibilitychange", () => {
  // Events that occurred while the page was hidden were missed.
  isStale = true;
  follow();
});
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", (event) => event.persisted && follow());
follow();
