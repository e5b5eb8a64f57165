() => {
  const inSight = (box) => box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0 &&
    box.top < innerHeight && box.left < innerWidth;
  const shown = (element) => {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) return false;  // what only a screen reader says
    return style.visibility !== "hidden" && style.opacity !== "0" && !/Material/.test(style.fontFamily);
  };
  const words = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement;
    if (element.closest("svg, script, style, noscript") || !shown(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    if ([...range.getClientRects()].some(inSight))
      words.push(...text.textContent.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)));
  }
  return words;
}
