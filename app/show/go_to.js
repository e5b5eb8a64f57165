// Goes to another page of this dashboard in the same tab; "back" returns to the rows.
let gone = "";

export default function ({ data }) {
  if (!data.href || data.href === gone) return;
  gone = data.href;
  if (window.faultline) window.faultline.go(data.href);
  else window.location.assign(data.href); // served by something else than `faultline serve`
}
