// The flame graph of a profile: boxes below what they are part of, as wide as their time.
// A box: n name, c kind (line, forward, backward, range), v microseconds, s source, k calls, i inside.
const data = JSON.parse(document.getElementById("data").textContent);
const flame = document.getElementById("flame");
const said = document.getElementById("said");
const find = document.getElementById("find");
const HIGH = 22, NARROWEST = 0.002;
let shown = data;

function time(us) {
  if (us >= 1e6) return (us / 1e6).toFixed(2) + " s";
  return us >= 1e3 ? (us / 1e3).toFixed(2) + " ms" : us.toFixed(1) + " us";
}

function words(box) {
  const parts = [box.n, box.s, time(box.v) + ", " + (100 * box.v / data.v).toFixed(1) + "%"];
  if (box.k) parts.push(box.k + (box.k === 1 ? " call" : " calls"));
  return parts.filter(Boolean).join("   ");
}

function zoom(box) {
  shown = box === shown && box.up ? box.up : box;
  draw();
  flame.firstChild.focus();
}

function draw() {
  flame.textContent = "";
  const word = find.value.toLowerCase();
  let deepest = 0;
  function add(box, left, width, depth) {
    deepest = Math.max(deepest, depth);
    const button = document.createElement("button");
    const text = box.n + (box.s ? "  " + box.s : "");
    button.className = box.c + (word && text.toLowerCase().includes(word) ? " hit" : "");
    button.textContent = text;
    button.title = words(box);
    button.setAttribute("aria-label", words(box));
    button.style.left = 100 * left + "%";
    button.style.width = 100 * width + "%";
    button.style.top = HIGH * depth + "px";
    button.style.padding = width > 0.02 ? "0 3px" : "0";
    button.onmouseenter = button.onfocus = () => { said.textContent = words(box); };
    button.onclick = () => zoom(box);
    flame.append(button);
    for (const inner of box.i || []) {
      inner.up = box;
      const part = width * inner.v / box.v;
      if (part > NARROWEST) add(inner, left, part, depth + 1);
      left += part;
    }
  }
  add(shown, 0, 1, 0);
  flame.style.height = HIGH * (deepest + 1) + "px";
}

find.oninput = draw;
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    find.value = "";
    shown = data;
    draw();
  } else if (event.key === "/" && document.activeElement !== find) {
    event.preventDefault();
    find.focus();
  }
});
draw();
