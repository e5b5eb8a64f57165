const LABEL = "Copy link";

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

export default function ({ parentElement }) {
  const button = parentElement.querySelector("button");
  button.textContent = LABEL;
  button.onclick = async () => {
    const url = new URL(window.location.href);
    url.searchParams.delete("token");
    await copy(url.href);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = LABEL; }, 2000);
  };
}
