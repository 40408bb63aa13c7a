// SPDX-License-Identifier: Apache-2.0
// What a report does in the browser: unpacks its data, draws charts, lanes and tables. No network, no modules.
"use strict";
(() => {
  const began = performance.now();
  const errors = [];
  window.addEventListener("error", (event) => errors.push(String(event.message)));
  window.addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };

  const unpack = async (id) => {
    const text = atob(document.getElementById(id).textContent.trim());
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // --- Charts ---

  const themed = (layout) => {
    const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--grid"), linecolor: colour("--grid") };
    const changed = {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--text"), family: "system-ui, sans-serif", size: 13, ...layout.font },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--faint"), activecolor: colour("--accent") },
      hoverlabel: { bgcolor: colour("--raised"), font: { color: colour("--text") } },
    };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) changed[name] = { ...axis, ...layout[name], minor: { ...layout[name].minor, gridcolor: colour("--raised") } };
    }
    return changed;
  };

  const drawChart = (place, figure) => {
    const layout = { autosize: true, ...themed(figure.layout || {}) };
    const options = { displaylogo: false, responsive: true, toImageButtonOptions: { format: "svg" } };
    return Plotly.newPlot(place, figure.data, layout, { ...options, ...figure.config });
  };

  // --- Tables ---

  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return value.toLocaleString("en-US");
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(4);
    return value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
  };

  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is absent comes last
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };

  const cell = (column, row) => {
    const value = column.values[row];
    const href = column.links && column.links[row];
    const text = shown(value);
    const look = column.number ? "number" : text.length <= 40 ? "short" : "";
    return make("td", { class: look }, href ? make("a", { href }, text) : text);
  };

  const drawTable = (place, table) => {
    const { columns, size } = table;
    const all = Array.from({ length: columns.length ? columns[0].values.length : 0 }, (_, row) => row);
    let rows = all, page = 0, sorted = -1, falling = false, words = null;
    const body = make("tbody"), count = make("span", { class: "count" });
    const heads = columns.map((column, index) =>
      make("th", { scope: "col", title: column.title || "", class: column.number ? "number" : "" },
        make("button", { type: "button", onclick: () => sort(index) }, column.name)));
    const filter = make("input", { type: "search", placeholder: "filter", "aria-label": "filter rows", oninput: () => choose() });
    const back = make("button", { type: "button", onclick: () => turn(-1) }, "‹ back");
    const next = make("button", { type: "button", onclick: () => turn(1) }, "next ›");
    const draw = () => {
      const first = page * size;
      body.replaceChildren(...rows.slice(first, first + size).map((row) =>
        make("tr", {}, ...columns.map((column) => cell(column, row)))));
      const last = Math.min(rows.length, first + size);
      count.textContent = rows.length > size
        ? `rows ${(first + 1).toLocaleString("en-US")}–${last.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")}`
        : `${rows.length.toLocaleString("en-US")} row${rows.length === 1 ? "" : "s"}`;
      back.disabled = page === 0;
      next.disabled = last >= rows.length;
    };
    const turn = (step) => { page += step; draw(); };
    const choose = () => {
      words = words || all.map((row) => columns.map((column) => shown(column.values[row])).join(" ").toLowerCase());
      const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows = all.filter((row) => wanted.every((word) => words[row].includes(word)));
      if (sorted >= 0) order();
      page = 0;
      draw();
    };
    const order = () => {
      const values = columns[sorted].values, sign = falling ? -1 : 1;
      rows = rows.slice().sort((a, b) => (values[a] === null || values[b] === null ? 1 : sign) * compare(values[a], values[b]) || a - b);
    };
    const sort = (index) => {
      falling = sorted === index ? !falling : Boolean(columns[index].number);
      sorted = index;
      heads.forEach((head, other) => other === index
        ? head.setAttribute("aria-sort", falling ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
      order();
      page = 0;
      draw();
    };
    const tools = make("div", { class: "tools" }, count);
    if (all.length > 5) tools.prepend(filter);
    if (all.length > size) tools.append(back, next);
    place.append(tools, make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)));
    draw();
  };

  const drawPicture = (place, picture) => {
    const source = URL.createObjectURL(new Blob([picture.svg], { type: "image/svg+xml" }));
    place.append(make("img", { src: source, alt: picture.text })); // scripts in an image never run
  };

  // --- Lanes of intervals over time, on a canvas: tens of thousands of them are drawn at once ---

  const drawLanes = (place, chart) => {
    const height = 22, left = 190, bottom = 26;
    const canvas = make("canvas", { role: "img", "aria-label": chart.title });
    const tip = make("div", { class: "tip", hidden: "" });
    let from = chart.begin, to = chart.end, held = null;
    const zoom = (factor, at = (from + to) / 2) => {
      const length = Math.min((to - from) * factor, chart.end - chart.begin);
      from = Math.min(Math.max(chart.begin, at - ((at - from) / (to - from)) * length), chart.end - length);
      to = from + length;
      draw();
    };
    const button = (text, title, action) => make("button", { type: "button", title, onclick: action }, text);
    place.append(
      make("div", { class: "tools" }, button("+", "closer", () => zoom(0.5)), button("−", "further", () => zoom(2)),
        button("all", "all of it", () => zoom(Infinity)),
        make("span", { class: "count" }, "drag to move; Ctrl and wheel to zoom"),
        ...chart.names.slice(0, 12).map((name, index) => make("span", { class: "key" }, make("i", { style: `background:${chart.colours[index % chart.colours.length]}` }), name))),
      make("div", { class: "lanes" }, canvas, tip));
    const width = () => canvas.clientWidth - left;
    const time = (x) => from + ((x - left) / width()) * (to - from);
    const draw = () => {
      const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
      canvas.style.height = `${chart.lanes.length * height + bottom}px`;
      canvas.width = canvas.clientWidth * ratio;
      canvas.height = (chart.lanes.length * height + bottom) * ratio;
      pen.scale(ratio, ratio);
      pen.font = "12px system-ui, sans-serif";
      const scale = width() / (to - from || 1);
      chart.lanes.forEach((lane, row) => {
        pen.fillStyle = colour("--text");
        pen.fillText(lane.name, 0, row * height + 15, left - 8);
        pen.fillStyle = colour("--grid");
        pen.fillRect(left, (row + 1) * height - 1, width(), 1);
        for (let i = 0; i < lane.begin.length; i++) {
          if (lane.end[i] < from || lane.begin[i] > to) continue;
          const x = left + Math.max(0, (lane.begin[i] - from) * scale);
          const end = left + Math.min(width(), (lane.end[i] - from) * scale);
          pen.globalAlpha = lane.share ? 0.25 + 0.75 * lane.share[i] : 1;
          pen.fillStyle = chart.colours[lane.what[i] % chart.colours.length];
          pen.fillRect(x, row * height + 3, Math.max(end - x, 0.7), height - 7);
        }
        pen.globalAlpha = 1;
      });
      pen.fillStyle = colour("--faint");
      for (let step = 0; step <= 4; step++) {
        const x = left + (width() * step) / 4;
        pen.textAlign = step === 4 ? "right" : step ? "center" : "left";
        pen.fillText(`${(from + ((to - from) * step) / 4).toPrecision(5)} ${chart.unit}`, x, chart.lanes.length * height + 18);
      }
      pen.textAlign = "left";
    };
    canvas.addEventListener("pointerdown", (event) => { held = time(event.offsetX); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("pointermove", (event) => {
      if (held !== null) {
        const shift = held - time(event.offsetX), length = to - from;
        from = Math.min(Math.max(chart.begin, from + shift), chart.end - length);
        to = from + length;
        draw();
        return;
      }
      const lane = chart.lanes[Math.floor(event.offsetY / height)], at = time(event.offsetX), near = (to - from) / width();
      const found = lane ? lane.begin.findLastIndex((begin, i) => begin <= at + near && lane.end[i] >= at - near) : -1;
      tip.hidden = found < 0;
      if (found < 0) return;
      const length = lane.end[found] - lane.begin[found];
      tip.textContent = `${chart.names[lane.what[found]]}: ${lane.begin[found].toPrecision(6)} to ${lane.end[found].toPrecision(6)} ${chart.unit}` +
        (lane.share && lane.share[found] < 1 ? `, busy ${(100 * lane.share[found]).toFixed(0)}% of it` : `, ${length.toPrecision(4)} ${chart.unit} long`);
      tip.style.left = `${Math.min(event.offsetX, canvas.clientWidth - 260)}px`;
      tip.style.top = `${event.offsetY + 16}px`;
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, time(event.offsetX));
    }, { passive: false });
    new ResizeObserver(draw).observe(place);
    redraws.push(draw);
    draw();
  };

  // --- The page ---

  const redraws = [];
  const pause = () => new Promise((resolve) => setTimeout(resolve));

  const start = async () => {
    const items = JSON.parse(await unpack("items"));
    const places = [...document.querySelectorAll("[data-item]")];
    const drawers = { table: drawTable, lanes: drawLanes, picture: drawPicture };
    for (const place of places) {
      const draw = drawers[place.dataset.kind];
      if (draw) draw(place, items[place.dataset.item]);
    }
    const charts = places.filter((each) => each.dataset.kind === "chart");
    if (charts.length) {
      document.head.append(make("script", {}, await unpack("plotly")));
      for (const place of charts) {
        await drawChart(place, items[place.dataset.item]);
        redraws.push(() => Plotly.relayout(place, themed(items[place.dataset.item].layout || {})));
        await pause(); // the page stays alive while many charts are drawn
      }
    }
  };

  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", () => redraws.forEach((redraw) => redraw()));
  document.addEventListener("DOMContentLoaded", () => {
    start().catch((error) => {
      errors.push(String(error));
      document.getElementById("trouble").textContent =
        `This page could not draw all of itself (${error}). It needs a browser of 2023 or later.`;
    }).finally(() => {
      window.manyscaleReport = { errors, seconds: (performance.now() - began) / 1000 };
      document.body.dataset.ready = errors.length ? "with errors" : "yes";
    });
  });
})();
