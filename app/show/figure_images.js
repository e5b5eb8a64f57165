const PIXELS_PER_UNIT = 2;
const MARGIN = 16;

// A picture drawn from an SVG sees no web fonts but those inside it.
async function fontFace(family) {
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      const style = rule.style;
      if (!(rule instanceof CSSFontFaceRule) || style.fontStyle === "italic") continue;
      if (style.fontFamily.replaceAll('"', "") !== family) continue;
      const url = rule.style.src.match(/url\("?([^")]+)"?\)/)[1];
      const bytes = await (await fetch(new URL(url, sheet.href || document.baseURI))).blob();
      const data = await new Promise((done) => {
        const reader = new FileReader();
        reader.onload = () => done(reader.result);
        reader.readAsDataURL(bytes);
      });
      return `@font-face{font-family:"${family}";font-weight:200 900;src:url(${data})}`;
    }
  }
  return "";
}

// A file says by itself what was filtered by, and that data are synthetic.
function noted(plot, note) {
  const title = plot.layout.title;
  const subtitle = title.subtitle || {};
  const text = [subtitle.text, note].filter(Boolean).join(" · ");
  const layout = { ...plot.layout, title: { ...title, subtitle: { ...subtitle, text } } };
  return { data: plot.data, layout };
}

async function svgOf(plot, note) {
  const size = plot.getBoundingClientRect();
  const { font, paper_bgcolor: paper } = plot._fullLayout;
  const url = await window.Plotly.toImage(noted(plot, note), {
    format: "svg",
    width: size.width,
    height: size.height,
  });
  const drawn = decodeURIComponent(url.slice(url.indexOf(",") + 1));
  const family = font.family.split(",")[0].replaceAll('"', "");
  const [width, height] = [size.width + 2 * MARGIN, size.height + 2 * MARGIN];
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    `<style>${await fontFace(family)}</style>` +
    `<rect width="${width}" height="${height}" fill="${paper}"/>` +
    `<g transform="translate(${MARGIN} ${MARGIN})">${drawn}</g></svg>`;
  return { svg, width, height };
}

async function pngOf({ svg, width, height }) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * PIXELS_PER_UNIT;
  canvas.height = height * PIXELS_PER_UNIT;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
}

// Streamlit shares the plotly.js it draws with as window.Plotly.
export default function ({ parentElement, data }) {
  for (const button of parentElement.querySelectorAll("button")) {
    const format = button.dataset.format;
    button.onclick = async () => {
      const drawn = await svgOf(
        document.querySelector(`.st-key-${data.key} .js-plotly-plot`), data.note);
      const blob = format === "png"
        ? await pngOf(drawn)
        : new Blob([drawn.svg], { type: "image/svg+xml" });
      save(blob, `${data.name}.${format}`);
    };
  }
}
