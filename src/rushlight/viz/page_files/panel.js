// What is known of the box or edge that was picked, and the user's source beside it.
let picked = null;      // an item's number, or a group's id
let pickedLine = null;  // or a drawn line

function element(tag, inside, cls) {
  const made = document.createElement(tag);
  if (inside !== undefined) made.append(inside);
  if (cls) made.className = cls;
  return made;
}

function pick(key) {
  picked = key;
  pickedLine = null;
  mark();
  tell();
  show(key);
  const box = drawn.boxes.get(key);
  if (box) box.element.focus({ preventScroll: true });
}

function pickEdge(line) {
  picked = null;
  pickedLine = line;
  mark();
  tell();
}

function toggle(id) {
  const on = !opened.has(id);
  if (!setOpen(id, on)) return;
  render();
  const first = on ? boxOf(groups.get(id).items[0]) : id;
  pick(first);
}

function mark() {
  for (const [key, box] of drawn.boxes) {
    box.element.classList.toggle("picked", key === picked);
    box.element.setAttribute("tabindex", key === picked ? 0 : -1);
  }
  if (picked === null || !drawn.boxes.has(picked)) {
    const first = drawn.boxes.values().next().value;
    if (first) first.element.setAttribute("tabindex", 0);
  }
  for (const line of drawn.lines) {
    line.element.classList.toggle("near", line.from === picked || line.to === picked);
    line.element.classList.toggle("picked", pickedLine !== null
      && line.from === pickedLine.from && line.to === pickedLine.to);
  }
  markStep();
}

// --- the panel ----------------------------------------------------------------------------------
function tell() {
  const panel = $("panel");
  panel.replaceChildren();
  panel.scrollTop = $("side").scrollTop = 0;
  if (pickedLine) tellEdge(panel, pickedLine);
  else if (typeof picked === "string") tellGroup(panel, groups.get(picked));
  else if (picked !== null) tellItem(panel, picked);
  else tellNothing(panel);
  markSource();
}

function tellNothing(panel) {
  panel.append(element("h2", data.title));
  panel.append(element("p", "Click a box or a line, search with /, or move the slider. Press ? for the keys."));
  const told = data.recorded ? "A backward pass was recorded: every line carries its gradient."
    : "No backward pass was recorded: draw with backward=True, or inside viz.record(), to see gradients.";
  panel.append(element("p", told, "soft"));
}

function tellItem(panel, i) {
  const item = data.items[i];
  panel.append(element("h2", nameOf(i)));
  panel.append(element("p", [item.name || item.kind, item.size].filter((x) => x).join(" · "), "soft"));
  const rule = item.rule === undefined ? null : data.rules[item.rule];
  if (rule && rule.about) panel.append(element("p", rule.about));
  if (item.module) panel.append(element("p", `in ${item.module}`, "soft"));
  if (item.details) panel.append(pairs(Object.entries(item.details)));
  if (rule) tellRule(panel, rule);
  if (item.received) {
    const shown = item.received.map((at, n) => [item.received.length > 1 ? `g, output ${n}` : "g", at]);
    tellValues(panel, "Gradient received", shown.filter(([, at]) => at >= 0));
  }
  const sent = data.edges.filter((e) => e[1] === i && e[5] >= 0);
  if (item.kind !== "output") {
    tellValues(panel, "Gradients sent on", sent.map((e) => [sentName(e), e[5]]));
  } else {
    tellValues(panel, "Gradient given", sent.map((e) => ["g", e[5]]));
  }
  if (item.kept && item.kept.length) tellValues(panel, "Kept for backward", item.kept);
  if (item.freed) panel.append(element("p", `What it kept was freed at ${item.freed}`, "soft"));
  if (item.value >= 0) tellValues(panel, "Value", [["", item.value]]);
  if (item.grad >= 0) tellValues(panel, ".grad", [["", item.grad]]);
  tellNeighbours(panel, i);
}

function sentName([source, , , name]) {
  return name ? `d${name.length > 1 ? " " : ""}${name}` : `to ${nameOf(source)}:`;
}

function tellRule(panel, rule) {
  if (rule.forward) {
    panel.append(element("h3", "Forward"));
    panel.append(maths(rule.forward));
  }
  panel.append(element("h3", "Backward rule"));
  for (const text of rule.backward) panel.append(maths(text));
  if (!rule.backward.length) {
    panel.append(rule.source ? element("pre", rule.source) : element("p", "not written in Python", "soft"));
  }
}

function maths(text) {  // MathML that viz/formula.py wrote, with every name escaped
  const holder = element("div", undefined, "maths");
  holder.innerHTML = text;
  return holder;
}

function pairs(entries) {
  const list = element("dl");
  for (const [name, value] of entries) list.append(element("dt", name), element("dd", value));
  return list;
}

function link(i, text) {
  const button = element("button", text, "link");
  button.addEventListener("click", () => goTo(i));
  return button;
}

function tellNeighbours(panel, i) {
  const rows = [];
  for (const e of data.edges) {
    if (e[1] === i) rows.push([e[3] ? `from, as ${e[3]}` : "from", e[0]]);
  }
  for (const e of data.edges) if (e[0] === i) rows.push(["to", e[1]]);
  if (!rows.length) return;
  panel.append(element("h3", "Joined to"));
  const list = element("dl");
  for (const [how, other] of rows.slice(0, 24)) {
    const cell = element("dd");
    cell.append(link(other, nameOf(other)), element("span", ` ${data.items[other].size}`, "soft"));
    list.append(element("dt", how), cell);
  }
  panel.append(list);
}

function tellGroup(panel, group) {
  panel.append(element("h2", group.title));
  if (group.subtitle) panel.append(element("p", group.subtitle, "soft"));
  panel.append(element("p", `${group.kind} of ${group.count} nodes`));
  const button = element("button", opened.has(group.id) ? "Fold" : "Unfold (Enter)");
  button.id = "open-group";
  button.addEventListener("click", () => toggle(group.id));
  panel.append(button);
  const counts = new Map();
  for (const i of group.items) counts.set(data.items[i].title, (counts.get(data.items[i].title) || 0) + 1);
  panel.append(element("h3", "Inside"));
  panel.append(pairs([...counts].sort((a, b) => b[1] - a[1]).slice(0, 20).map(([t, n]) => [t, `× ${n}`])));
}

function tellEdge(panel, line) {
  panel.append(element("h2", line.edges.length > 1 ? `${line.edges.length} edges` : "edge"));
  for (const at of line.edges.slice(0, 12)) {
    const [source, target, , name, , gradient] = data.edges[at];
    const row = element("p");
    row.append(link(source, nameOf(source)), " → ", link(target, nameOf(target)));
    if (name) row.append(element("span", ` as ${name}`, "soft"));
    panel.append(row, element("p", data.items[source].size, "soft"));
    if (gradient >= 0) tellValues(panel, "Gradient that flowed back", [["", gradient]]);
    else panel.append(element("p", "No gradient was recorded here.", "soft"));
  }
}

// --- the source ---------------------------------------------------------------------------------
const rows = new Map();  // "file:line" -> element
function writeSource() {
  const made = new Map();
  data.items.forEach((item, i) => {
    if (item.place === undefined) return;
    const [file, line] = data.places[item.place];
    const key = `${file}:${line}`;
    if (!made.has(key)) made.set(key, []);
    made.get(key).push(i);
  });
  for (const [file, { name, first, lines }] of Object.entries(data.files)) {
    if (!lines.length) continue;
    $("source").append(element("h3", name));
    lines.forEach((text, n) => {
      const row = element("div", text || " ", "row");
      row.dataset.line = first + n;
      const items = made.get(`${file}:${first + n}`);
      if (items) {
        row.classList.add("made");
        row.title = `${items.length} node${items.length > 1 ? "s" : ""}`;
        row.addEventListener("click", () => goTo(nextOf(items)));
        row.addEventListener("mouseenter", () => glow(items, true));
        row.addEventListener("mouseleave", () => glow(items, false));
        rows.set(`${file}:${first + n}`, row);
      }
      $("source").append(row);
    });
  }
}

function nextOf(items) {  // the one behind the picked one, so that clicks go round
  return items[(items.indexOf(picked) + 1) % items.length];
}

function glow(items, on) {
  for (const i of items) {
    const box = drawn.boxes.get(boxOf(i));
    if (box) box.element.classList.toggle("line", on);
  }
}

function markSource() {
  for (const row of rows.values()) row.classList.remove("now");
  let i = typeof picked === "number" ? picked : -1;
  if (typeof picked === "string") i = groups.get(picked).items[0];
  if (pickedLine) i = data.edges[pickedLine.edges[0]][1];
  if (i < 0 || data.items[i].place === undefined) return;
  const [file, line] = data.places[data.items[i].place];
  const row = rows.get(`${file}:${line}`);
  if (!row) return;
  row.classList.add("now");
  const side = $("source"), at = row.offsetTop - side.offsetTop;
  if (side.scrollHeight > side.clientHeight + 4) side.scrollTop = at - side.clientHeight / 2;
}
