// What the page knows, and which groups stand open.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const LEAVES = new Set(["parameter", "leaf", "constant"]);
const groups = new Map();  // id -> group
const above = new Map();   // an item's number, or a group's id -> the group it is in
const opened = new Set(data.open);
const FEW_READERS = 2;     // boxes that a leaf is joined to; more groups name it instead,
const MANY_READERS = 6;    // and of so many boxes all but the first
const MOST = 600;          // boxes that are drawn at once

(function enter(group) {
  groups.set(group.id, group);
  group.count = 0;
  group.items = [];
  for (const child of group.children) {
    if (typeof child === "number") {
      above.set(child, group.id);
      group.items.push(child);
    } else {
      above.set(child.id, group.id);
      enter(child);
      group.items = group.items.concat(child.items);
    }
  }
  group.count = group.items.length;
  for (const leaf of group.leaves) above.set(leaf, group.id);
})(data.root);

function ancestors(key) {  // outermost first, without the graph itself
  const found = [];
  for (let g = above.get(key); g && g !== "all"; g = above.get(g)) found.unshift(g);
  return found;
}

function boxOf(item) {  // the key of the box that an item is seen in
  const closed = ancestors(item).find((g) => !opened.has(g));
  return closed === undefined ? item : closed;
}

function seen() {  // the boxes, and which are joined by which edges
  const boxes = new Map();
  for (let i = 0; i < data.items.length; i++) {
    const key = boxOf(i);
    if (!boxes.has(key)) boxes.set(key, []);
    boxes.get(key).push(i);
  }
  const joined = new Map(), readers = new Map();
  data.edges.forEach(([source, target], at) => {
    const a = boxOf(source), b = boxOf(target);
    if (a === b) return;
    const pair = `${a}>${b}`;
    if (!joined.has(pair)) joined.set(pair, { from: a, to: b, edges: [] });
    joined.get(pair).edges.push(at);
    if (!readers.has(a)) readers.set(a, new Set());
    readers.get(a).add(b);
  });
  const reads = new Map();
  for (const [pair, line] of joined) {
    const leaf = typeof line.from === "number" ? data.items[line.from] : null;
    if (!leaf || !LEAVES.has(leaf.kind)) continue;
    const all = readers.get(line.from), first = all.values().next().value;
    if ((all.size > FEW_READERS && typeof line.to === "string")
        || (all.size > MANY_READERS && line.to !== first)) {
      if (!reads.has(line.to)) reads.set(line.to, []);
      reads.get(line.to).push(leaf.title);
      joined.delete(pair);
    }
  }
  return { boxes, joined: [...joined.values()], reads };
}

function countIfOpen(id) {  // boxes there would be if this group were opened
  const group = groups.get(id);
  return seen().boxes.size - 1 + group.children.length + group.leaves.length;
}

function setOpen(id, on) {
  if (on && countIfOpen(id) > MOST) {
    note(`That would draw more than ${MOST} boxes. Fold something first.`);
    return false;
  }
  if (on) opened.add(id);
  else for (const g of groups.keys()) if (g === id || ancestors(g).includes(id)) opened.delete(g);
  return true;
}

function reveal(item) {  // open all that an item is in
  for (const g of ancestors(item)) opened.add(g);
}

function placeText(item) {
  if (item.place === undefined) return "";
  const [file, line] = data.places[item.place];
  return `${data.files[file].name}:${line}`;
}

function sourceText(item) {
  if (item.place === undefined) return "";
  const [file, line] = data.places[item.place];
  const found = data.files[file];
  return (found.lines[line - found.first] || "").trim();
}

function nameOf(i) {
  const item = data.items[i];
  return item.label ? `${item.label} = ${item.title}` : item.title;
}

let noteTimer = 0;
function note(text) {
  $("note").textContent = text;
  $("note").hidden = false;
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => { $("note").hidden = true; }, 4000);
}
