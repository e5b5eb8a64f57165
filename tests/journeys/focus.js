(() => {
  const FOCUSABLE = "button, a[href], input, select, textarea, [tabindex]";
  const LOOK = ["outlineStyle", "outlineWidth", "outlineColor", "boxShadow", "borderColor", "backgroundColor",
    "color", "opacity", "textDecorationLine"];
  const visited = new Set(), unseen = [];
  let before;

  function active(root = document) {
    const each = root.activeElement;
    return each?.shadowRoot?.activeElement ? active(each.shadowRoot) : each;
  }
  // What an element and those around it look like.
  function look(each) {
    const around = [each, ...each.querySelectorAll("*")].slice(0, 6);
    for (let up = each.parentElement, n = 0; up && n < 9; up = up.parentElement, n += 1) around.push(up);
    return JSON.stringify(around.map((one) => LOOK.map((name) => getComputedStyle(one)[name])));
  }
  // On a busy machine what the page does about the focus is drawn some frames later.
  async function drawn() {
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    await new Promise((idle) => requestIdleCallback(idle, { timeout: 500 }));
  }
  async function changed(before) {
    for (let n = 0; n < 10; n += 1) {
      if (look(before.element) !== before.look) return true;
      await drawn();
    }
    return false;
  }
  // With little motion every change still passes through its first frame: what it comes to is looked at.
  async function settled(each) {
    let last = look(each);
    for (let n = 0; n < 10; n += 1) {
      await drawn();
      if (look(each) === last) break;
      last = look(each);
    }
    return last;
  }
  function all(root = document) {
    const found = [...root.querySelectorAll(FOCUSABLE)];
    return found.concat([...root.querySelectorAll("*")].flatMap((each) =>
      each.shadowRoot ? all(each.shadowRoot) : []));
  }

  window.focusTest = {
    // Notes the control that has the focus; true once the focus is back at the first one.
    async step() {
      await drawn();
      const now = active();
      if (before && before.element !== now && !await changed(before)) {
        unseen.push(before.element.outerHTML.slice(0, 160));
      }
      if (!now || now === document.body) return visited.size > 1;
      if (visited.has(now)) return now === visited.values().next().value;
      visited.add(now);
      before = { element: now, look: await settled(now) };
      if (!now.checkVisibility({ opacityProperty: true })) unseen.push(now.outerHTML.slice(0, 160));
      return false;
    },
    // Of a group (radio buttons, tabs) one control is reached by Tab, the others by arrows.
    unreached() {
      return all().filter((each) => each.checkVisibility({ visibilityProperty: true }) && each.tabIndex >= 0 &&
        !each.disabled && !visited.has(each) && each.role !== "radio" && each.type !== "radio" &&
        !each.closest("[aria-hidden=true], [inert]"))
        .map((each) => each.outerHTML.slice(0, 200));
    },
    unseen: () => unseen,
  };
})()
