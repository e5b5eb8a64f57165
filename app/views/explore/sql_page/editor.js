// A text area over its own text in colours: no library, nothing loaded.
const KEYWORDS = new Set(
  `all analyze and any as asc asof between by case cast cross desc describe distinct else end escape
  except exclude exists explain false fetch filter first following from full group having ilike in
  inner intersect interval is join last lateral left like limit natural not null nulls offset on or
  order outer over partition pivot positional preceding qualify range recursive replace right row
  rows sample select semi show similar summarize table tablesample then true unbounded union unnest
  unpivot using values when where window with within`.split(/\s+/),
);
const TOKENS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\$\w+)|(\b\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?\b)|([A-Za-z_]\w*)(?=(\s*\()?)/gi;
const KINDS = ["comment", "string", "name", "parameter", "number"];

function escaped(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}

function kindOf(match, tables) {
  const found = KINDS.find((_, at) => match[at + 1] !== undefined);
  if (found) return found;
  const word = match[6].toLowerCase();
  if (KEYWORDS.has(word)) return "keyword";
  if (tables.has(word)) return "table";
  return match[7] === undefined ? "" : "function";
}

// Every character with its class; the lines are divided only then, as a comment may hold several.
function highlighted(sql, tables, place) {
  const pieces = [];
  let end = 0;
  for (const match of sql.matchAll(TOKENS)) {
    pieces.push([sql.slice(end, match.index), ""], [match[0], kindOf(match, tables)]);
    end = match.index + match[0].length;
  }
  pieces.push([sql.slice(end), ""]);
  const lines = [[]];
  for (const [text, kind] of pieces) {
    text.split("\n").forEach((part, at) => {
      if (at > 0) lines.push([]);
      if (part) lines.at(-1).push([part, kind]);
    });
  }
  return lines.map((line, at) => {
    const spans = place && place[0] === at + 1 ? marked(line, place) : line;
    const html = spans.map(([text, kind]) => `<span class="${kind}">${escaped(text)}</span>`);
    return `<div class="line">${html.join("") || " "}</div>`;
  }).join("");
}

// The line's pieces cut where the place of an error begins and ends.
function marked(line, [, column, length]) {
  const [from, to] = [column - 1, column - 1 + length];
  const cut = [];
  let at = 0;
  for (const [text, kind] of line) {
    for (const [first, last, wrong] of [[0, from, ""], [from, to, " wrong"], [to, Infinity, ""]]) {
      const part = text.slice(Math.max(first - at, 0), Math.max(last - at, 0));
      if (part) cut.push([part, kind + wrong]);
    }
    at += text.length;
  }
  return cut;
}

export default function ({ parentElement, data, setStateValue, setTriggerValue }) {
  const area = parentElement.querySelector("textarea");
  const echo = parentElement.querySelector("pre");
  const tables = new Set(data.tables);
  parentElement.querySelector(".editor").classList.toggle("dark", data.mode === "dark");
  let place = data.place;
  const draw = () => { echo.innerHTML = highlighted(area.value, tables, place); };
  // Marked, since the same text may be told twice with another one put in its place between.
  const tell = () => setStateValue("sql", { text: area.value, mark: `${Date.now()} ${Math.random()}` });
  if (area.dataset.version !== String(data.version)) {
    area.value = data.sql;
    area.dataset.version = data.version;
  }
  if (data.insert && area.dataset.inserted !== String(data.insert.count)) {
    area.dataset.inserted = data.insert.count;
    area.setRangeText(data.insert.text, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    tell();
  }
  area.placeholder = data.placeholder;
  area.oninput = () => { place = null; draw(); };
  area.onchange = tell;
  area.onkeydown = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    setTriggerValue("run", area.value);
  };
  draw();
}
