// Plays the frames of a figure. The figure is drawn apart from its controls, perhaps later than
// they are, and drawn anew when its page runs again: so each step looks for it.
const STEP_MS = 600;
const reached = new Map();

export default function ({ parentElement, data }) {
  const one = (name) => parentElement.querySelector(name);
  const [play, slider, output] = ["button.play", "input", "output"].map(one);
  const last = data.moments.length - 1;
  const known = JSON.stringify(data);
  parentElement.stopReplay?.(); // the page ran again
  let timer = null;

  const draw = () => {
    const plot = document.querySelector(`.st-key-${data.figure} .js-plotly-plot`);
    if (!plot || !window.Plotly || !plot._transitionData) return;
    window.Plotly.animate(plot, [slider.value], {
      mode: "immediate",
      frame: { duration: 0, redraw: true },
      transition: { duration: 0 },
    });
  };
  const show = (moment) => {
    slider.value = moment;
    slider.setAttribute("aria-valuetext", data.moments[moment]);
    output.value = `${Number(moment) + 1} of ${last + 1}`;
    reached.set(known, Number(moment));
    draw();
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-label", "Play");
  };
  const start = () => {
    if (Number(slider.value) === last) show(0);
    play.textContent = "Pause";
    play.setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      show(Number(slider.value) + 1);
      if (Number(slider.value) === last) stop();
    }, STEP_MS);
  };

  slider.max = last;
  slider.oninput = () => {
    stop();
    show(slider.value);
  };
  play.disabled = last === 0;
  play.onclick = () => (timer === null ? start() : stop());
  one(".phases").replaceChildren(
    ...data.phases.map((phase) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = phase.says;
      button.disabled = phase.at === null;
      button.onclick = () => {
        stop();
        show(phase.at);
      };
      return button;
    }),
  );
  const marks = data.phases.filter((phase) => phase.at !== null);
  one("datalist").replaceChildren(...marks.map((phase) => new Option(phase.says, phase.at)));
  parentElement.stopReplay = stop;
  show(reached.get(known) ?? data.first);
  return stop;
}
