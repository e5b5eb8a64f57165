// Without the clipboard interface (plain http on another host) the old command still works.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.onclick = async () => {
    await copy(data.address ? new URL(data.address, window.location.href).href : data.text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = data.label; }, 2000);
  };
}
