// Search, keys and buttons; then the first drawing.
function goTo(i) {
  reveal(i);
  render();
  pick(i);
}

// --- search -------------------------------------------------------------------------------------
const texts = data.items.map((item, i) => [nameOf(i), item.name, item.module, placeText(item), sourceText(item), item.kind]
  .filter((x) => x).join(" ").toLowerCase());
let hits = [], chosenHit = 0;

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter((w) => w);
  hits = words.length ? texts.map((_, i) => i).filter((i) => words.every((w) => texts[i].includes(w))) : [];
  const rank = (i) => {  // what is called so comes before what stands on such a line
    const name = nameOf(i).toLowerCase();
    return name.split(/[ =.]+/).some((part) => words.includes(part)) ? 0 : words.every((w) => name.includes(w)) ? 1 : 2;
  };
  hits.sort((a, b) => rank(a) - rank(b) || a - b);
  chosenHit = 0;
  const list = $("found");
  list.replaceChildren();
  hits.slice(0, 60).forEach((i, n) => {
    const item = data.items[i], row = element("li", nameOf(i));
    row.append(" ", element("small", [item.size, placeText(item)].filter((x) => x).join(" · ")));
    row.setAttribute("role", "option");
    row.id = `hit-${n}`;
    row.addEventListener("mousedown", (event) => { event.preventDefault(); choose(n); });
    list.append(row);
  });
  if (words.length && !hits.length) list.append(element("li", "nothing found"));
  list.hidden = !words.length;
  $("search").setAttribute("aria-expanded", String(!list.hidden));
  light();
}

function light() {
  [...$("found").children].forEach((row, n) => row.setAttribute("aria-selected", String(n === chosenHit && hits.length > 0)));
  const row = $(`hit-${chosenHit}`);
  if (row) row.scrollIntoView({ block: "nearest" });
  $("search").setAttribute("aria-activedescendant", row ? row.id : "");
}

function choose(n) {
  if (hits[n] === undefined) return;
  chosenHit = n;
  light();
  goTo(hits[n]);
}

$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { choose(chosenHit); $("found").hidden = true; event.preventDefault(); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    chosenHit = Math.max(0, Math.min(Math.min(hits.length, 60) - 1, chosenHit + (event.key === "ArrowDown" ? 1 : -1)));
    light();
    event.preventDefault();
  } else if (event.key === "Escape") { $("search").value = ""; search(); stage.focus(); }
  event.stopPropagation();
});
$("search").addEventListener("blur", () => { $("found").hidden = true; });

// --- keys ---------------------------------------------------------------------------------------
const KEYS = [
  ["/", "search"], ["↑ ↓", "to what a box was made from, to what was made from it"],
  ["← →", "to the node made before, after"], ["Enter", "unfold the picked group"], ["Backspace", "fold the group that the picked box is in"],
  ["+ − 0", "zoom in, out, show all"], [", .", "one step back, forward on the slider"],
  ["Space", "play, pause"], ["f u", "fold all, unfold all"], ["t", "light or dark"], ["Esc", "pick nothing"],
];

function neighbour(up) {
  const near = drawn.lines.filter((line) => (up ? line.to : line.from) === picked);
  const keys = near.map((line) => (up ? line.from : line.to));
  return keys.find((k) => typeof k === "string" || ["op", "function"].includes(data.items[k].kind)) ?? keys[0];
}

function along(step) {
  const keys = [...drawn.boxes.keys()];
  const order = (k) => (typeof k === "string" ? groups.get(k).items[0] : k);
  keys.sort((a, b) => order(a) - order(b));
  return keys[(keys.indexOf(picked) + step + keys.length) % keys.length];
}

function foldAll() { opened.clear(); render(); picked = null; tell(); fit(); }

function unfoldAll() {
  if (data.items.length > MOST) {
    note(`${data.items.length} boxes are too many to draw at once: unfold what you want to see.`);
    return;
  }
  for (const g of groups.keys()) opened.add(g);
  render();
  fit();
}

function act(event) {
  const typing = event.target.closest("input[type=search], dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const sliding = event.target.id === "slider", pressing = event.target.closest("button");
  const key = event.key;
  if (key === "/") $("search").focus();
  else if (key === "?") $("keys").showModal();
  else if (key === "+" || key === "=") zoom(1.25);
  else if (key === "-" || key === "_") zoom(0.8);
  else if (key === "0") fit();
  else if (key === "t") switchTheme();
  else if (key === "f") foldAll();
  else if (key === "u") unfoldAll();
  else if (key === ".") goToStep(at + 1);
  else if (key === ",") goToStep(at - 1);
  else if (key === " " && !pressing) play(!playing);
  else if (key === "Escape") { picked = pickedLine = null; play(false); goToStep(0); tell(); }
  else if (key === "Enter" && typeof picked === "string" && !pressing) toggle(picked);
  else if (key === "Backspace" && picked !== null) {
    const chain = ancestors(picked).filter((g) => opened.has(g));
    if (chain.length) toggle(chain[chain.length - 1]);
  } else if (!sliding && (key === "ArrowUp" || key === "ArrowDown")) {
    const next = picked === null ? along(0) : neighbour(key === "ArrowUp");
    if (next !== undefined) pick(next);
  } else if (!sliding && (key === "ArrowLeft" || key === "ArrowRight")) {
    pick(along(key === "ArrowLeft" ? -1 : 1));
  } else return;
  event.preventDefault();
}
document.addEventListener("keydown", act);

// --- buttons ------------------------------------------------------------------------------------
$("in").addEventListener("click", () => zoom(1.25));
$("out").addEventListener("click", () => zoom(0.8));
$("fit").addEventListener("click", fit);
$("fold").addEventListener("click", foldAll);
$("unfold").addEventListener("click", unfoldAll);
$("theme").addEventListener("click", switchTheme);
$("play").addEventListener("click", () => play(!playing));
$("slider").addEventListener("input", () => { play(false); goToStep(Number($("slider").value)); });
$("help").addEventListener("click", () => $("keys").showModal());
$("keys").addEventListener("click", () => $("keys").close());

const list = element("dl");
for (const [keys, what] of KEYS) {
  const cell = element("dt");
  keys.split(" ").forEach((k) => cell.append(element("kbd", k), " "));
  list.append(cell, element("dd", what));
}
$("keys").append(element("h2", "Keys"), list);
$("title").textContent = data.title;
$("slider").max = steps;
writeSource();
render();
start();
goToStep(0);
tell();
