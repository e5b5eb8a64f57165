// Moves four sliders together: every place of them was computed before, nothing is asked again.
export default function ({ parentElement, data }) {
  const places = { drained: 0, spares: 0, interval: data.now[0], restart: data.now[1] };
  const one = (name) => parentElement.querySelector(`[name="${name}"]`);
  const shown = (name) => parentElement.querySelector(`[data-of="${name}"]`);
  const many = (value) => Math.round(value).toLocaleString("en-US");
  const short = (value) =>
    Number(value.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });
  const hours = (value) =>
    value >= 48 ? `${short(value / 24)} d` : value >= 1 ? `${short(value)} h` : `${short(value * 60)} min`;
  const span = (low, high, write) =>
    low === null || high === null ? "" : `${write(low)} to ${write(high)}`;
  const write = (name, value, beside) => {
    shown(name).querySelector("strong").textContent = value;
    shown(name).querySelector("span").textContent = beside;
  };
  const show = () => {
    const { drained, spares, interval, restart } = places;
    const [value, low, high] = data.ettr[drained][spares][interval][restart];
    const mttf = data.mttf[drained];
    write("ettr", value.toFixed(3), span(low, high, (each) => each.toFixed(3)));
    write("mttf", hours(mttf[0]), span(mttf[1], mttf[2], hours));
    const lost = (ettr) => data.gpuHours * (1 - ettr);
    const held = (drained + data.spares[spares]) * data.nodeHours;
    const cost = (ettr) => (data.price === null ? 1 : data.price) * (lost(ettr) + held);
    write("cost", short(cost(value)), low === null ? "" : span(cost(high), cost(low), short));
    const left = data.nodes - drained - data.spares[spares];
    write("capacity", many(left), `of ${many(data.nodes)} nodes`);
    const said = {
      drained: `${drained}`,
      spares: `${data.spares[spares]}`,
      interval: `${short(data.intervals[interval])} min`,
      restart: `${short(data.restarts[restart])} min`,
    };
    for (const [name, text] of Object.entries(said)) {
      one(name).value = places[name];
      one(name).setAttribute("aria-valuetext", text);
      one(name).parentElement.querySelector("b").textContent = text;
    }
  };
  const lengths = {
    drained: data.mttf.length,
    spares: data.spares.length,
    interval: data.intervals.length,
    restart: data.restarts.length,
  };
  for (const [name, length] of Object.entries(lengths)) {
    one(name).max = length - 1;
    one(name).disabled = length < 2;
    one(name).oninput = () => {
      places[name] = Number(one(name).value);
      show();
    };
  }
  shown("cost").previousElementSibling.textContent = data.costTitle;
  show();
}
