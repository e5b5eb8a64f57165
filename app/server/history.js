// Back and Forward: one step a page. Streamlit writes the filters of a page into the address in
// several steps, each an entry of the history; those after the first replace it. Before it opens the
// page of a link of the sidebar, it takes out of the address what the page that is left has in it of
// its own: Back brings that page as it was left. Where Back has left a page before it was drawn,
// Streamlit still writes its address: until somebody acts, that is late.
let left = "";
let brought = false;
addEventListener("popstate", () => { brought = true; }, true);
for (const act of ["pointerdown", "click", "keydown"])
  addEventListener(act, (event) => { brought &&= event.altKey || event.metaKey; }, true);

history.pushState = (state, unused, url) => {
  const to = new URL(url, document.baseURI);
  const kept = to.pathname === location.pathname;
  if (brought && !kept) return;
  if (!kept && left && new URL(left).pathname === location.pathname)
    History.prototype.replaceState.call(history, history.state, "", left);
  History.prototype[kept ? "replaceState" : "pushState"].call(history, state, unused, url);
};
addEventListener("click", (event) => {
  left = event.target.closest?.('[data-testid="stSidebarNavLink"]') ? location.href : "";
}, true);

// Goes to a page of this dashboard without loading it anew: Streamlit takes the address for one that
// Back has brought, and sets every filter from it.
window.faultline = {
  go(href) {
    History.prototype.pushState.call(history, {}, "", href);
    dispatchEvent(new PopStateEvent("popstate", { state: {} }));
    document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
  },
};

// The filters of this page, and a page with them.
const filters = () => {
  const here = new URLSearchParams(location.search);
  const names = ["cluster", "period", "from", "to", "partition", "min_gpus", "account"];
  return names.filter((name) => here.has(name)).map((name) => [name, here.get(name)]);
};
const filtered = (page) => {
  const there = new URL(page, document.baseURI);
  for (const [name, value] of filters()) there.searchParams.set(name, value);
  return there;
};

// A link within the text of a page opens in the same tab; with a key held, as the browser does. While
// the filters are not drawn, Streamlit would leave them behind: one of the page list is loaded anew.
addEventListener("click", (event) => {
  const listed = event.target.closest?.('[data-testid="stSidebarNavLink"]');
  const early = listed && filters().length && !document.querySelector(".st-key-period button");
  const link = early ? listed : event.target.closest?.('a[target="_blank"]');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const to = early ? filtered(link.href) : new URL(link.href, document.baseURI);
  const here = new URL(".", document.baseURI);
  if (to.origin !== here.origin || to.pathname.slice(here.pathname.length).includes("/")) return;
  event.preventDefault();
  event.stopPropagation();
  if (early) location.assign(to.href);
  else window.faultline.go(to.href);
}, true);

// Ctrl-K anywhere, and / outside of what is typed, open the page Find with the filters of this page,
// and put the cursor there.
addEventListener("keydown", (event) => {
  const typed = event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable=true]");
  const slash = event.key === "/" && !typed && !event.ctrlKey && !event.metaKey && !event.altKey;
  const search = event.key?.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  if (!slash && !search) return;
  event.preventDefault();
  event.stopPropagation();
  const there = filtered("find");
  if (there.pathname !== location.pathname) window.faultline.go(there.href);
  const focus = (left) => {
    const box = document.querySelector('textarea[aria-label="Find"]');
    if (box) box.focus();
    else if (left) setTimeout(focus, 50, left - 1);
  };
  focus(200);
}, true);

// Where dragging across a chart sets the period, Streamlit takes no click on a mark: it is told of one
// as of a selection.
addEventListener("pointerover", (event) => {
  const chart = event.target.closest?.(".js-plotly-plot");
  if (!chart?.on || chart.heard === chart._ev) return;
  chart.heard = chart._ev;
  chart.on("plotly_click", (clicked) => {
    if (chart._fullLayout.dragmode !== "select") return;
    const points = clicked.points.map(({ curveNumber, pointNumber, pointIndex, x, y, customdata }) =>
      ({ curveNumber, pointNumber, pointIndex, x, y, customdata }));
    chart.emit("plotly_selected", { points });
  });
}, true);

// What the server sent with the page stands until the page has drawn the same.
addEventListener("DOMContentLoaded", () => {
  const sight = document.getElementById("first-sight");
  if (!sight) return;
  const last = sight.querySelector("b") ? '[data-testid="stMetricValue"]' : "h1";
  const drawn = new MutationObserver(() => {
    const main = document.querySelector('[data-testid="stMainBlockContainer"]');
    const done = document.querySelector('[data-test-script-state="notRunning"]');
    if (!main?.querySelector(last) && !(done && main?.querySelector("h1"))) return;
    sight.remove();
    drawn.disconnect();
  });
  drawn.observe(document.documentElement, { childList: true, subtree: true, attributes: true });
});
