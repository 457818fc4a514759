// Numbers: small tensors as tables, large ones as heat maps with statistics.
function tellValues(panel, title, entries) {
  if (!entries.length) return;
  panel.append(element("h3", title));
  for (const [name, at] of entries) {
    if (at < 0) continue;
    const told = data.values[at];
    const holder = element("div", undefined, "value");
    const head = element("p");
    if (name) head.append(element("b", name), " ");
    const shape = told.shape ? `${told.dtype} ${told.shape.length ? `[${told.shape.join(", ")}]` : "scalar"}` : "";
    head.append(element("span", [shape, told.layout].filter((x) => x).join(", "), "soft"));
    holder.append(head);
    if (told.number !== undefined) head.append(told.number);
    if (told.values !== undefined) holder.append(table(told));
    else if (told.heat) holder.append(heatMap(told.heat));
    if (told.note) holder.append(element("p", told.note, "soft"));
    if (told.stats && (told.values === undefined || told.stats.NaN || told.stats.inf)) {
      holder.append(pairs(Object.entries(told.stats)));
    }
    panel.append(holder);
  }
}

function colour(level, weight) {
  if (level === null) return "rgba(200, 0, 160, .8)";
  const part = Math.min(1, Math.abs(level) / 100) * weight;
  const tone = getComputedStyle(document.documentElement).getPropertyValue(level < 0 ? "--minus" : "--plus");
  return `rgba(${tone}, ${part.toFixed(3)})`;
}

function table(told) {
  const flat = [];
  (function walk(x) { Array.isArray(x) ? x.forEach(walk) : flat.push(x); })(told.values);
  const levels = told.heat.flat(), shape = told.shape;
  const columns = shape.length ? shape[shape.length - 1] : 1;
  const per = shape.length > 1 ? shape[shape.length - 2] : 1;
  const body = element("table");
  for (let at = 0; at < flat.length; at += columns) {
    const row = element("tr");
    flat.slice(at, at + columns).forEach((text, n) => {
      const cell = element("td", text);
      cell.style.background = colour(levels[at + n], 0.5);
      row.append(cell);
    });
    if (at && (at / columns) % per === 0) row.style.borderTop = "3px solid var(--rule)";
    body.append(row);
  }
  const holder = element("div", body, "scroll");
  return holder;
}

function heatMap(levels) {
  const canvas = element("canvas"), wide = Math.max(...levels.map((row) => row.length));
  canvas.width = wide;
  canvas.height = levels.length;
  canvas.style.width = `${Math.max(60, Math.min(300, wide * 10))}px`;
  canvas.style.height = `${Math.max(10, Math.min(220, levels.length * 10))}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "heat map: blue is negative, orange positive");
  const ink = canvas.getContext("2d");
  levels.forEach((row, y) => row.forEach((level, x) => {
    ink.fillStyle = colour(level, 1);
    ink.fillRect(x, y, 1, 1);
  }));
  return canvas;
}
