// Back and Forward: one step a page. Streamlit writes the filters of a page into the address in
// several steps, each an entry of the history; those after the first replace it.
history.pushState = (state, unused, url) => {
  const to = new URL(url, document.baseURI);
  const kept = to.pathname === location.pathname;
  History.prototype[kept ? "replaceState" : "pushState"].call(history, state, unused, url);
};

// Goes to a page of this dashboard without loading it anew: Streamlit takes the address for one that
// Back has brought, and sets every filter from it.
window.faultline = {
  go(href) {
    History.prototype.pushState.call(history, {}, "", href);
    dispatchEvent(new PopStateEvent("popstate", { state: {} }));
    document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
  },
};

// A link within the text of a page opens in the same tab; with a key held, as the browser does.
addEventListener("click", (event) => {
  const link = event.target.closest?.('a[target="_blank"]');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.href, document.baseURI);
  const here = new URL(".", document.baseURI);
  if (to.origin !== here.origin || to.pathname.slice(here.pathname.length).includes("/")) return;
  event.preventDefault();
  event.stopPropagation();
  window.faultline.go(to.href);
}, true);
