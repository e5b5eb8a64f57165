// The server draws figures for the width of the screen: it learns it with the first request of the
// page's socket, which comes after the page is read.
document.addEventListener("readystatechange", () => {
  const narrow = matchMedia("(max-width: 640px)").matches ? 1 : 0;
  document.cookie = `faultline_narrow=${narrow}; path=/; SameSite=Lax`;
}, { once: true });

// Streamlit's list of pages holds its sections, where a list may hold items alone: a screen reader
// is told of groups with a name instead.
function nameSections() {
  const list = document.querySelector('[data-testid="stSidebarNavItems"]:not([role])');
  if (!list) return;
  list.setAttribute("role", "presentation");
  for (const section of list.children) {
    section.setAttribute("role", "group");
    section.setAttribute("aria-label", section.querySelector("header")?.textContent ?? "");
    for (const item of section.querySelectorAll("li")) item.setAttribute("role", "presentation");
  }
}

// Lines of code that scroll sideways do so by keyboard, too.
function reachCode() {
  const unreached = document.querySelectorAll('[data-testid="stCode"] pre:not([tabindex])');
  for (const code of unreached) code.tabIndex = 0;
}

new MutationObserver(() => { nameSections(); reachCode(); })
  .observe(document, { childList: true, subtree: true });

// A table picks its first cell as soon as it has the focus, and the next one with Tab; a cell that is
// picked opens its row. Here the focus picks nothing: a click picks the cell that it hits, on a head
// it sorts, Tab passes a table by, and Enter or an arrow picks the first cell.
const entered = new WeakSet();
addEventListener("keydown", (event) => {
  const grid = event.target.closest?.('[data-testid="data-grid-canvas"]');
  if (!grid) return;
  if (event.key === "Tab") event.stopPropagation();
  else if (!entered.has(grid) && (event.key === "Enter" || event.key.startsWith("Arrow"))) {
    entered.add(grid);
    event.preventDefault();
    event.stopPropagation();
    grid.dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
  }
}, true);
addEventListener("focusin", (event) => {
  if (event.isTrusted && event.target.matches?.('[data-testid="data-grid-canvas"]')) {
    entered.delete(event.target);
    event.stopPropagation();
  }
}, true);

// Enter looks for a name; a log of several lines keeps its lines, and Ctrl-Enter looks.
addEventListener("keydown", (event) => {
  const box = event.target;
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey || !event.isTrusted)
    return;
  if (!box.matches?.('.st-key-find textarea') || box.value.includes("\n")) return;
  event.preventDefault();
  event.stopPropagation();
  box.dispatchEvent(new KeyboardEvent("keydown",
    { key: "Enter", code: "Enter", ctrlKey: true, bubbles: true, cancelable: true }));
}, true);
