// Goes to another page of this dashboard. A full load: the address is then all that the page needs,
// and "back" returns to the rows.
let gone = "";

export default function ({ data }) {
  if (data.href && data.href !== gone) {
    gone = data.href;
    window.location.assign(data.href);
  }
}
