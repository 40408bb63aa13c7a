// SPDX-License-Identifier: Apache-2.0
// What a report does in the browser: unpacks its data, draws charts, lanes and tables. No network, no modules.
"use strict";
const report = { errors: [], began: performance.now(), redraws: [], drawers: {} };
window.addEventListener("error", (event) => report.errors.push(String(event.message)));
window.addEventListener("unhandledrejection", (event) => report.errors.push(String(event.reason)));

report.make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};

report.unpack = async (id) => {
  const text = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
};

report.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// --- Numbers, as manyscale.report.numbers writes them ---

report.units = {
  s: [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9], ["ps", 1e-12]],
  B: [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]],
  "B/s": [["TB/s", 1e12], ["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3], ["B/s", 1]],
  "flop/s": [["Tflop/s", 1e12], ["Gflop/s", 1e9], ["Mflop/s", 1e6], ["flop/s", 1]],
  Hz: [["GHz", 1e9], ["MHz", 1e6], ["kHz", 1e3], ["Hz", 1]],
};
report.seconds = { fs: 1e-15, ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3 };

report.plain = (value, digits = 4) => {
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return value.toLocaleString("en-US", { maximumSignificantDigits: digits });
};

report.shown = (value, unit = "") => {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (unit in report.seconds) return report.shown(value * report.seconds[unit], "s");
  if (unit === "%") {
    if (value > 0 && value < 0.005) return "<0.01%";
    return `${value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 1 ? 2 : 1 })}%`;
  }
  const steps = report.units[unit];
  if (!steps) return report.plain(value) + (unit && unit !== "1" ? ` ${value === 1 ? unit : report.plural(unit)}` : "");
  if (value === 0) return `0 ${unit}`;
  const [name, size] = steps.find(([, least]) => Math.abs(value) >= 0.9995 * least) || steps[steps.length - 1];
  return `${report.plain(Number((value / size).toPrecision(4)))} ${name}`;
};

report.plural = (unit) => {
  const word = unit.split(" ").pop();
  if (!/^[a-z]+$/.test(word) || ["inst", "flop", "byte"].includes(word) || /[^s]s$/.test(word)) return unit;
  if (word.endsWith("y")) return `${unit.slice(0, -1)}ies`;
  return /(ss|ch|sh|x)$/.test(word) ? `${unit}es` : `${unit}s`;
};

// --- Charts ---

report.themed = (layout) => {
  const colour = report.colour;
  const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--grid"), linecolor: colour("--grid") };
  const changed = {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--text"), family: "system-ui, sans-serif", size: 13, ...layout.font },
    hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--grid"), font: { color: colour("--text") } },
  };
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis/.test(name)) changed[name] = { ...axis, ...layout[name] };
  }
  return changed;
};

// On a phone, words beside the axes take the width that the chart needs: they are smaller.
report.fitted = (figure, width) => {
  const layout = { ...figure.layout };
  if (width > 560) return layout;
  for (const name of ["xaxis", "yaxis"]) {
    const axis = layout[name];
    const few = axis && axis.type !== "category" ? { nticks: 5 } : {}; // every bar has its name
    if (axis) layout[name] = { ...axis, ...few, tickfont: { size: 11 }, title: { ...axis.title, font: { size: 11 } } };
  }
  const names = figure.data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name);
  const columns = names.length > 3 && names.every((name) => name.length <= 18) ? 2 : 1;
  const rows = Math.ceil(names.length / columns);
  if (layout.showlegend !== false && names.length > 1) layout.height = (layout.height || 360) + 20 * Math.max(0, rows - 2);
  layout.legend = { ...layout.legend, font: { size: 11 }, maxheight: 20 * rows + 20 };
  if (columns > 1) layout.legend = { ...layout.legend, entrywidth: 0.49, entrywidthmode: "fraction" };
  layout.margin = { ...layout.margin, l: Math.min(44, (layout.margin || {}).l ?? 44), r: 8 };
  return layout;
};

report.drawChart = (spot, figure) => {
  const layout = { autosize: true, ...report.themed(report.fitted(figure, spot.clientWidth)) };
  const options = { displayModeBar: false, responsive: true };
  const head = spot.parentElement.querySelector("h3");
  if (head) {
    const save = () => Plotly.downloadImage(spot, { format: "svg", filename: head.firstChild.textContent });
    const buttons = report.make("span", { class: "figure-tools" },
      report.make("button", { type: "button", title: "save this chart as SVG", onclick: save }, "SVG"));
    head.append(buttons);
  }
  report.redraws.push(() => Plotly.relayout(spot, report.themed(report.fitted(figure, spot.clientWidth))));
  return Plotly.newPlot(spot, figure.data, layout, { ...options, ...figure.config });
};

report.drawers.picture = (spot, picture) => {
  const source = URL.createObjectURL(new Blob([picture.svg], { type: "image/svg+xml" }));
  spot.append(report.make("img", { src: source, alt: picture.text })); // scripts in an image never run
};
