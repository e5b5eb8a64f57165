// Goes to another page of this dashboard in the same tab; "back" returns to the rows.
let gone = 0;

export default function ({ data }) {
  if (!data.href || data.count === gone) return;
  gone = data.count;
  if (window.faultline) window.faultline.go(data.href);
  else window.location.assign(data.href); // served by something else than `faultline serve`
}
