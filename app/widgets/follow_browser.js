const PHONE = matchMedia("(max-width: 640px)");
// What was last told to the server: it is told once, so that no run asks for another in turn.
const told = {};

function modeOf(element) {
  const background = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(background.slice(at, at + 2), 16));
  return red + green + blue < 3 * 128 ? "dark" : "light";
}

// Called again whenever the theme changes: its variables are part of the component.
export default function ({ parentElement, data, setStateValue }) {
  const tell = (name, value) => {
    if (value !== data[name] && value !== told[name]) setStateValue(name, value);
    told[name] = value;
  };
  tell("mode", modeOf(parentElement.host ?? parentElement));
  tell("narrow", PHONE.matches);
  PHONE.onchange = () => tell("narrow", PHONE.matches);
}
