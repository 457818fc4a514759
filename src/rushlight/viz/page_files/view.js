// Pan, zoom, light and dark.
const camera = { x: 0, y: 0, scale: 1 };
const stage = $("stage");

function place(glide) {
  $("world").classList.toggle("glide", Boolean(glide));
  $("world").style.transform = `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})`;
}

function zoom(factor, cx, cy) {
  const box = stage.getBoundingClientRect();
  const x = cx === undefined ? box.width / 2 : cx - box.left;
  const y = cy === undefined ? box.height / 2 : cy - box.top;
  const scale = Math.min(4, Math.max(0.04, camera.scale * factor));
  camera.x = x - ((x - camera.x) * scale) / camera.scale;
  camera.y = y - ((y - camera.y) * scale) / camera.scale;
  camera.scale = scale;
  place(cx === undefined);
}

function fit() {
  const box = stage.getBoundingClientRect();
  const wide = Math.max(drawn.width, 1), high = Math.max(drawn.height, 1);
  const room = box.height - (box.width > 500 ? 26 : 0);  // below stands the legend
  camera.scale = Math.min(1.6, Math.min(box.width / wide, room / high) * 0.97);
  camera.x = (box.width - wide * camera.scale) / 2;
  camera.y = (room - high * camera.scale) / 2;
  place(true);
}

function start() {  // all of it if that can be read, else its end: where the backward pass begins
  fit();
  if (camera.scale >= 0.55) return;
  const box = stage.getBoundingClientRect();
  camera.scale = 0.8;
  const ends = [...drawn.boxes].filter(([key]) => data.items[key] && data.items[key].kind === "output");
  const at = ends.length ? ends[0][1].place : { x: drawn.width / 2, y: drawn.height };
  camera.x = box.width / 2 - at.x * camera.scale;
  camera.y = box.height - (at.y + 60) * camera.scale;
  place();
}

function show(key) {  // move as little as needed for a box to be in view
  const found = drawn.boxes.get(key);
  if (!found) return;
  const box = stage.getBoundingClientRect(), at = found.place, s = camera.scale, edge = 24;
  const left = (at.x - at.width / 2) * s + camera.x, right = (at.x + at.width / 2) * s + camera.x;
  const top = (at.y - at.height / 2) * s + camera.y, bottom = (at.y + at.height / 2) * s + camera.y;
  if (left < edge) camera.x += edge - left;
  else if (right > box.width - edge) camera.x -= right - box.width + edge;
  if (top < edge) camera.y += edge - top;
  else if (bottom > box.height - edge) camera.y -= bottom - box.height + edge;
  place(true);
}

const fingers = new Map();
let moved = 0;
stage.addEventListener("pointerdown", (event) => {
  if (event.target.closest("button")) return;
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  moved = 0;
});
stage.addEventListener("pointermove", (event) => {
  const last = fingers.get(event.pointerId);
  if (!last) return;
  const now = { x: event.clientX, y: event.clientY };
  moved += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
  if (moved > 4 && !stage.hasPointerCapture(event.pointerId)) stage.setPointerCapture(event.pointerId);
  const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
  if (others.length) {
    const [o] = others;
    const before = Math.hypot(last.x - o.x, last.y - o.y), after = Math.hypot(now.x - o.x, now.y - o.y);
    if (before > 0) zoom(after / before, (now.x + o.x) / 2, (now.y + o.y) / 2);
  } else {
    camera.x += now.x - last.x;
    camera.y += now.y - last.y;
    place();
  }
  $("graph").classList.add("moving");
  fingers.set(event.pointerId, now);
});
for (const kind of ["pointerup", "pointercancel"]) {
  stage.addEventListener(kind, (event) => {
    fingers.delete(event.pointerId);
    $("graph").classList.remove("moving");
  });
}
stage.addEventListener("click", (event) => {  // a drag is no click
  if (moved > 6) { event.stopPropagation(); event.preventDefault(); }
  moved = 0;
}, true);
stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX, event.clientY);
}, { passive: false });

const prefers = matchMedia("(prefers-color-scheme: dark)");
let chosen = "";
function dress() {
  document.documentElement.dataset.theme = chosen || (prefers.matches ? "dark" : "light");
}
prefers.addEventListener("change", dress);
function switchTheme() {
  chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  dress();
  tell();
}
dress();
