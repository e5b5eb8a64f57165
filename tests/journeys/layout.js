(() => {
  const main = document.querySelector("[data-testid=stMain]");
  const text = (each) => (each.ariaLabel || each.textContent || "").slice(0, 60);
  const within = "[data-testid=stDataFrame], [data-testid=stTabs] [role=tablist], pre, iframe, .js-plotly-plot";
  const seen = (each) => {
    const box = each.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && box.right > 0 && each.checkVisibility();
  };
  const of = (selector, root = main) => [...root.querySelectorAll(selector)].filter(seen);

  const outside = of("*")
    .filter((each) => !each.closest(within) && each.getBoundingClientRect().right > innerWidth + 1)
    .map(text);

  const numbers = of("[data-testid=stMetric]");
  const cut = numbers.flatMap((number) => of("[data-testid=stMetricValue], [data-testid=stMetricLabel]", number)
    .flatMap((each) => [each, ...each.querySelectorAll("*")])
    .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1 &&
      getComputedStyle(each).overflowX !== "visible")
    .map(text));
  const starts = new Set(numbers.map((each) => Math.round(each.getBoundingClientRect().left)));

  const narrow = of(".js-plotly-plot").flatMap((plot) => {
    const { _size: size, width, title } = plot._fullLayout;
    const box = plot.getBoundingClientRect();
    const lost = [...plot.querySelectorAll("text")].filter((each) => {
      const at = each.getBoundingClientRect();
      return at.width && (at.right > box.right + 2 || at.left < box.left - 2 || at.top < box.top - 2);
    });
    const share = size.w / width;
    return [...(share < 0.6 ? [`${title.text}: ${share}`] : []), ...lost.map((each) => each.textContent)];
  });

  const controls = "button, a[href], input, select, textarea, summary, [role=tab], [role=radio], [role=button]";
  const small = of(controls, document.body).flatMap((each) => {
    const box = (each.closest("label") ?? each).getBoundingClientRect();
    const hit = box.width >= 24 && box.height >= 24;
    return hit || each.closest("[data-testid=stSidebar][aria-expanded=false], .js-plotly-plot")
      ? [] : [`${text(each)} ${each.tagName} ${box.width} x ${box.height}`];
  });

  return {
    sideways: Math.max(document.scrollingElement.scrollWidth, main.scrollWidth),
    outside, cut, narrow, small, n_numbers: numbers.length, n_columns: starts.size,
  };
})()
