// The slider: the forward pass node by node, then the backward pass.
const forward = data.items.map((item, i) => i).filter((i) => ["op", "function"].includes(data.items[i].kind));
const backward = data.order;
const steps = forward.length + backward.length;
let at = 0;        // how many steps are done; 0: the slider is at rest, and all is shown as it is
let playing = 0;

function currentItem() {
  if (at === 0) return null;
  return at <= forward.length ? forward[at - 1] : backward[at - forward.length - 1];
}

function goToStep(n) {
  at = Math.max(0, Math.min(steps, n));
  $("slider").value = at;
  const item = currentItem();
  const slider = $("slider");
  if (item === null) {
    $("step").textContent = `${forward.length} nodes`;
    slider.setAttribute("aria-valuetext", "at rest");
    mark();
    return;
  }
  const back = at > forward.length;
  const n1 = back ? at - forward.length : at, all = back ? backward.length : forward.length;
  const text = `${back ? "backward" : "forward"} ${n1}/${all}: ${nameOf(item)}`;
  $("step").textContent = text;
  slider.setAttribute("aria-valuetext", text);
  const focused = document.activeElement;
  pick(boxOf(item));
  if (picked !== item) { tellStep(item); }
  if (focused && focused !== document.body && document.contains(focused)) focused.focus({ preventScroll: true });
}

function tellStep(item) {  // it is inside a folded group: the panel tells of the node all the same
  $("panel").replaceChildren();
  tellItem($("panel"), item);
}

function markStep() {
  const done = new Map(), ran = new Set();
  if (at > 0) {
    forward.slice(0, at).forEach((i) => done.set(i, "fore"));
    backward.slice(0, Math.max(0, at - forward.length)).forEach((i) => { done.set(i, "back"); ran.add(i); });
  }
  const back = at > forward.length, now = currentItem();
  const state = (i) => {
    const item = data.items[i];
    if (done.has(i)) return done.get(i);
    if (item.kind === "output") return back ? "back" : at === forward.length ? "fore" : "ahead";
    if (LEAVES.has(item.kind)) {
      return back && data.edges.some((e) => e[0] === i && ran.has(e[1])) && item.kind !== "constant" ? "back" : "fore";
    }
    return "ahead";
  };
  const nowBox = now === null ? null : boxOf(now);
  for (const [key, box] of drawn.boxes) {
    const inside = typeof key === "string" ? groups.get(key).items : [key];
    const states = at === 0 ? [] : inside.map(state);
    const which = ["back", "fore"].find((name) => states.includes(name)) || (at ? "ahead" : "");
    for (const name of ["back", "fore", "ahead"]) box.element.classList.toggle(name, name === which);
    box.element.classList.toggle("current", key === nowBox);
  }
  for (const line of drawn.lines) {
    const flows = line.edges.some((e) => ran.has(data.edges[e][1])
      || (back && data.items[data.edges[e][1]].kind === "output"));
    const fore = line.edges.some((e) => done.has(data.edges[e][1]));
    const which = at === 0 ? "" : flows ? "back" : fore || at >= forward.length ? "fore" : "ahead";
    for (const name of ["back", "fore", "ahead"]) line.element.classList.toggle(name, name === which);
    const fresh = now !== null && line.edges.some((e) => data.edges[e][1] === now);
    line.element.classList.toggle("fresh", fresh);
  }
}

function play(on) {
  clearInterval(playing);
  playing = 0;
  $("play").textContent = on ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", on ? "Pause" : "Play");
  if (!on) return;
  if (at >= steps) goToStep(0);
  const pace = Math.max(60, Math.min(900, 24000 / Math.max(steps, 1)));
  playing = setInterval(() => {
    if (at >= steps) play(false);
    else goToStep(at + 1);
  }, pace);
}
