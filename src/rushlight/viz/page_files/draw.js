// Boxes and lines: dagre finds their places, this draws them.
const SVG = "http://www.w3.org/2000/svg";
let drawn = { boxes: new Map(), lines: [], width: 0, height: 0 };

function make(tag, attributes, inside) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  if (inside !== undefined) element.textContent = inside;
  return element;
}

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

function cut(text, length) {
  if (text.length <= length) return text;
  const half = (length - 1) >> 1;
  return `${text.slice(0, length - 1 - half)}…${text.slice(-half)}`;
}

function textsOf(key, reads) {
  if (typeof key === "string") {
    const group = groups.get(key);
    const lines = [cut(group.title, 34)];
    if (group.subtitle) lines.push(cut(group.subtitle, 38));
    lines.push(`${group.count} nodes folded`);
    if (reads) lines.push(cut(`reads ${reads.join(", ")}`, 42));
    return lines;
  }
  const item = data.items[key];
  const named = reads ? cut(`reads ${reads.join(", ")}`, 34) : "";
  return [cut(nameOf(key), 34), item.size, placeText(item), named].filter((text) => text);
}

function layout() {
  const whole = seen();
  try {
    return layOut(whole, whole.boxes.size <= 300);
  } catch (error) {  // dagre gives up on some nested graphs: then without frames around groups
    return layOut(whole, false);
  }
}

function layOut({ boxes, joined, reads }, compound) {
  const graph = new dagre.graphlib.Graph({ compound, multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 40, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  const texts = new Map();
  const families = getComputedStyle(document.body).fontFamily;
  for (const key of boxes.keys()) {
    const lines = textsOf(key, reads.get(key));
    texts.set(key, lines);
    const widths = lines.map((text, n) => widthOf(text, n ? `10px ${families}` : `600 12.5px ${families}`));
    const width = Math.max(54, ...widths) + (typeof key === "string" ? 36 : 22);
    graph.setNode(String(key), { width, height: 20 + 14.5 * lines.length });
  }
  if (compound) {
    for (const key of boxes.keys()) {
      const chain = ancestors(key).filter((g) => opened.has(g));
      let inner = String(key);
      for (const g of chain.reverse()) {
        if (!graph.hasNode(g)) graph.setNode(g, {});
        graph.setParent(inner, g);
        inner = g;
      }
    }
  }
  for (const line of joined) graph.setEdge(String(line.from), String(line.to), {});
  dagre.layout(graph);
  return { graph, boxes, joined, texts };
}

function pathOf(points) {
  let d = `M${points[0].x} ${points[0].y}`;
  if (points.length === 2) return `${d}L${points[1].x} ${points[1].y}`;
  for (let i = 1; i < points.length - 1; i++) {
    const last = i === points.length - 2;
    const x = last ? points[i + 1].x : (points[i].x + points[i + 1].x) / 2;
    const y = last ? points[i + 1].y : (points[i].y + points[i + 1].y) / 2;
    d += `Q${points[i].x} ${points[i].y} ${x} ${y}`;
  }
  return d;
}

function render() {
  const { graph, boxes, joined, texts } = layout();
  const lines = [];
  for (const id of ["clusters", "lines", "labels", "boxes"]) $(id).replaceChildren();
  for (const g of groups.keys()) {
    const place = opened.has(g) && graph.hasNode(g) ? graph.node(g) : null;
    if (place && place.width) $("clusters").append(clusterOf(groups.get(g), place));
  }
  for (const line of joined) {
    const d = pathOf(graph.edge(String(line.from), String(line.to)).points);
    const element = make("path", { class: "edge", d });
    const touch = make("path", { class: "touch", d });
    touch.addEventListener("click", () => pickEdge(line));
    $("lines").append(element, touch);
    if (line.edges.length > 1 && typeof line.from === "number" && typeof line.to === "number") {
      const { x, y } = graph.edge(String(line.from), String(line.to)).points[1];
      $("lines").append(make("text", { class: "times", x: x + 5, y }, `×${line.edges.length}`));
    }
    lines.push({ ...line, element });
  }
  const found = new Map();
  for (const key of boxes.keys()) {
    const place = graph.node(String(key));
    const element = boxElement(key, place, texts.get(key));
    found.set(key, { place, element });
    $("boxes").append(element);
  }
  const size = graph.graph();
  drawn = { boxes: found, lines, width: size.width, height: size.height };
  mark();
}

function clusterOf(group, place) {
  const x = place.x - place.width / 2, y = place.y - place.height / 2;
  const element = make("g", { class: "cluster", "data-group": group.id });
  element.append(make("rect", { x, y, width: place.width, height: place.height, rx: 8 }));
  const whole = group.subtitle ? `${group.title}: ${group.subtitle}` : group.title;
  const title = cut(whole, Math.max(6, Math.min(48, Math.floor((place.width - 28) / 6.2))));
  const text = make("text", { x: x + 8, y: y + 14 }, `− ${title}`);
  text.addEventListener("click", () => toggle(group.id));
  $("labels").append(text);  // above the lines, so that it can be clicked
  return element;
}

function boxElement(key, place, lines) {
  const group = typeof key === "string";
  const kind = group ? "group" : data.items[key].kind;
  const x = place.x - place.width / 2, y = place.y - place.height / 2;
  const element = make("g", {
    class: `box ${kind}`, "data-key": key, tabindex: -1, role: "button",
    "aria-label": `${kind} ${lines.join(", ")}`,
  });
  const round = group || kind === "op" || kind === "function" ? 5 : 14;
  for (const shift of group ? [6, 3, 0] : [0]) {
    element.append(make("rect", { x: x + shift, y: y + shift, width: place.width, height: place.height, rx: round }));
  }
  lines.forEach((text, n) => {
    element.append(make("text", { x: place.x, y: y + 21 + 14.5 * n, class: n ? "" : "name" }, text));
  });
  if (group) {
    const plus = make("text", { x: x + place.width - 9, y: y + 16, class: "plus" }, "+");
    plus.addEventListener("click", (event) => { event.stopPropagation(); toggle(key); });
    element.append(plus);
  }
  element.addEventListener("click", () => pick(key));
  element.addEventListener("dblclick", () => { if (group) toggle(key); });
  return element;
}
