/**
 * Live updates: on an event of the stream, and once a minute for the clocks, the page is fetched again and the regions
 * that changed are put in place. Without this script every page is complete, as of the moment it was asked for.
 */
const MINUTE = 60_000;
/** Events come in bursts: one fetch for all of them. */
const SETTLE_MS = 400;
const MIN_INTERVAL_MS = 2_000;

const main = document.querySelector("main[data-live]");
const state = document.getElementById("live-state");
let timer;
let lastFetch = performance.now();
let isStale = false;

function schedule() {
  if (document.hidden) return;
  const wait = Math.max(SETTLE_MS, lastFetch + MIN_INTERVAL_MS - performance.now());
  if (timer === undefined) timer = setTimeout(refresh, wait);
}

async function refresh() {
  timer = undefined;
  lastFetch = performance.now();
  isStale = false;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    replaceRegions(fresh.querySelector("main"));
  } catch {
    // The next event or minute tries again.
  }
}

function replaceRegions(fresh) {
  const regions = [...main.querySelectorAll("[data-region]")];
  const newer = [...fresh.querySelectorAll("[data-region]")];
  const focus = focusKey();
  if (regions.map(({ id }) => id).join() !== newer.map(({ id }) => id).join()) {
    main.replaceChildren(...fresh.childNodes);
  } else {
    for (const [i, region] of regions.entries()) replaceRegion(region, newer[i]);
  }
  focus?.();
}

function replaceRegion(region, newer) {
  if (region.innerHTML === newer.innerHTML) return;
  const open = [...region.querySelectorAll("details")].map((details) => details.open);
  region.replaceChildren(...newer.childNodes);
  for (const [i, details] of [...region.querySelectorAll("details")].entries())
    details.open = open[i] ?? false;
  if (newer.dataset.announce !== undefined && newer.dataset.announce !== region.dataset.announce) {
    region.dataset.announce = newer.dataset.announce;
    tell(newer.dataset.announce);
  }
}

/** How to find the focused link again, should its region be replaced. */
function focusKey() {
  const element = document.activeElement;
  const region = element?.closest("[data-region]");
  if (!region) return undefined;
  const selector = "a, button, summary, [tabindex]";
  const place = [...region.querySelectorAll(selector)].indexOf(element);
  return () => {
    if (element.isConnected) return;
    document.getElementById(region.id)?.querySelectorAll(selector)[place]?.focus({ preventScroll: true });
  };
}

function tell(text) {
  state.hidden = false;
  state.textContent = text;
}

let stream;

/** One connection while somebody looks: a browser has but six for all tabs of a site. */
function connect() {
  const { live, types } = main.dataset;
  stream = new EventSource(`/live?${live}`);
  stream.addEventListener("open", () => tell("Live"));
  stream.addEventListener("error", () =>
    tell(stream.readyState === EventSource.CLOSED ? "Not live" : "Reconnecting"),
  );
  for (const type of types.split(" ")) stream.addEventListener(type, schedule);
}

function follow() {
  stream?.close();
  if (document.hidden) return;
  connect();
  if (isStale) schedule();
}

setInterval(schedule, MINUTE);
document.addEventListener("visibilitychange", () => {
  // Whatever happened while nobody looked is not known.
  isStale = true;
  follow();
});
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", (event) => event.persisted && follow());
follow();
