// The tour: five lines, each with links to the pages it is about. A browser that has not seen it gets
// it once, when the first numbers of a page are there; links to #tour open it again.
(() => {
  const steps = [
    ["Overview says how well the fleet is, and what to do first, by the GPU-hours at stake.",
      [["Overview", "./"]]],
    ["Ctrl-K or / finds a job, node, user, incident or cause from any page, and reads a pasted log.",
      [["Find", "find"]]],
    ["An incident joins failures, events and outages on one timeline, with its cause and who acts.",
      [["Incidents", "incidents"]]],
    ["The ledger says where every GPU-hour went; ETTR, what the large runs got out of theirs.",
      [["Ledger", "ledger"], ["ETTR", "ettr"]]],
    ["All of it rests on records: what is there and what is missing, SQL over it, reports to send.",
      [["Data", "data"], ["SQL", "sql"], ["Reports", "reports"]]],
  ];
  const seen = "faultline_tour";
  let panel = null, at = 0;

  const made = (tag, text, then) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (then) element.addEventListener("click", then);
    return element;
  };
  const close = () => {
    panel?.remove();
    panel = null;
  };
  const step = (to) => {
    at = to;
    const app = getComputedStyle(document.querySelector('[data-testid="stApp"]'));
    panel.style.cssText = `background:${app.backgroundColor};color:${app.color};font:${app.font}`;
    const [line, pages] = steps[at];
    const says = made("p", `${line} `);
    pages.forEach(([name, href], place) => {
      const link = made("a", name);
      link.href = new URL(href, document.baseURI).href;
      link.target = "_blank"; // opens in this tab, by the handler of all links within a page
      says.append(place ? ", " : "", link);
    });
    const buttons = made("div", "");
    buttons.append(made("span", `${at + 1} of ${steps.length}`));
    if (at) buttons.append(made("button", "Back", () => step(at - 1)));
    const last = at === steps.length - 1;
    if (!last) buttons.append(made("button", "Skip", close));
    buttons.append(made("button", last ? "Done" : "Next", last ? close : () => step(at + 1)));
    const held = panel.contains(document.activeElement);
    panel.replaceChildren(says, buttons);
    if (held) buttons.lastChild.focus();
  };
  const open = () => {
    close();
    try {
      localStorage.setItem(seen, "1");
    } catch { /* a browser that keeps nothing sees it again */ }
    panel = document.createElement("section");
    panel.id = "faultline-tour";
    panel.setAttribute("aria-label", "Tour");
    panel.setAttribute("aria-live", "polite");
    panel.addEventListener("keydown", (event) => event.key === "Escape" && close());
    document.body.prepend(panel); // first for the keyboard; it lies over the page and moves nothing
    step(0);
  };

  addEventListener("click", (event) => {
    if (!event.target.closest?.('a[href$="#tour"]')) return;
    event.preventDefault();
    event.stopPropagation();
    open();
    panel.querySelector("button:last-child").focus();
  }, true);

  const new_here = () => {
    try {
      return !navigator.webdriver && localStorage.getItem(seen) === null;
    } catch {
      return false;
    }
  };
  // A program that drives the browser is shown no tour, nor is who looks at an empty store.
  if (new_here())
    new MutationObserver((_, watch) => {
      if (!document.querySelector('[data-testid="stMetric"]')) return;
      watch.disconnect();
      (window.requestIdleCallback ?? setTimeout)(open);
    }).observe(document, { childList: true, subtree: true });
})();
