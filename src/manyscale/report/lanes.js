// SPDX-License-Identifier: Apache-2.0
// Timelines on a canvas: lanes of intervals and levels over one axis, in groups that open, with search and zoom.

report.drawers.lanes = (spot, chart) => {
  const height = 22, bottom = 26, most = 26, make = report.make, colour = report.colour; // rows that are seen at once
  const canvas = make("canvas", { role: "img", "aria-label": chart.title });
  const tip = make("div", { class: "tip", hidden: "" });
  const tall = make("div"), window_ = make("div", { class: "lane-window" }, canvas, tall);
  let from = chart.begin, to = chart.end, held = null, words = "", left = 120, rows = [];
  const groups = new Map();
  for (const lane of chart.lanes) {
    const kind = lane.kind || lane.name;
    if (!groups.has(kind)) groups.set(kind, { name: kind, lanes: [], open: chart.lanes.length <= most });
    groups.get(kind).lanes.push(lane);
  }
  const choose = () => {
    rows = [];
    for (const group of groups.values()) {
      const lanes = words ? group.lanes.filter((lane) => lane.name.toLowerCase().includes(words)) : group.lanes;
      if (group.lanes.length === 1 || words || (group.open && groups.size === 1)) lanes.forEach((lane) => rows.push({ lane, inner: false }));
      else {
        rows.push({ group });
        if (group.open) lanes.forEach((lane) => rows.push({ lane, inner: true }));
      }
    }
    const seen = Math.min(rows.length, most) * height;
    window_.style.height = `${seen + bottom}px`;
    tall.style.height = `${Math.max(0, (rows.length * height) - seen)}px`;
    draw();
  };
  const zoom = (factor, at = (from + to) / 2) => {
    const length = Math.min((to - from) * factor, chart.end - chart.begin);
    from = Math.min(Math.max(chart.begin, at - ((at - from) / (to - from)) * length), chart.end - length);
    to = from + length;
    draw();
  };
  const button = (text, title, action) => make("button", { type: "button", title, onclick: action }, text);
  const search = make("input", { type: "search", placeholder: "search tracks", "aria-label": "search tracks",
    oninput: () => { words = search.value.toLowerCase(); choose(); } });
  const fold = button("open groups", "show every track", () => {
    const open = fold.textContent === "open groups";
    groups.forEach((group) => { group.open = open; });
    fold.textContent = open ? "close groups" : "open groups";
    choose();
  });
  const tools = make("div", { class: "tools" }, button("+", "closer", () => zoom(0.5)), button("−", "further", () => zoom(2)),
    button("all", "all of it", () => zoom(Infinity)), make("span", { class: "count" }, "drag to move, Ctrl and wheel to zoom"));
  if (chart.lanes.length > 8) tools.append(search);
  if (groups.size < chart.lanes.length && groups.size > 1) tools.append(fold);
  const keys = chart.names.slice(0, 16).map((name, index) =>
    make("span", { class: "key" }, make("i", { style: `background:${chart.colours[index % chart.colours.length]}` }), name));
  spot.append(tools, make("div", { class: "tools keys" }, ...keys), make("div", { class: "lanes" }, window_, tip));

  const width = () => canvas.clientWidth - left;
  const time = (x) => from + ((x - left) / width()) * (to - from);
  const label = (row) => (row.lane ? (row.inner ? "    " : "") + row.lane.name : `${row.group.open ? "▾" : "▸"} ${row.group.name} (${row.group.lanes.length})`);
  const shortened = (pen, text) => {
    if (pen.measureText(text).width <= left - 10) return text;
    let end = text.length;
    while (end > 3 && pen.measureText(`${text.slice(0, end)}…`).width > left - 10) end--;
    return `${text.slice(0, end)}…`;
  };
  const drawSpans = (pen, lane, top, scale) => {
    for (let i = 0; i < lane.begin.length; i++) {
      if (lane.end[i] < from || lane.begin[i] > to) continue;
      const x = left + Math.max(0, (lane.begin[i] - from) * scale);
      const end = left + Math.min(width(), (lane.end[i] - from) * scale);
      pen.globalAlpha = lane.share ? 0.25 + 0.75 * lane.share[i] : 1;
      pen.fillStyle = chart.colours[lane.what[i] % chart.colours.length];
      pen.fillRect(x, top + 3, Math.max(end - x, 0.7), height - 7);
    }
    pen.globalAlpha = 1;
  };
  const drawLevels = (pen, lane, top, scale) => {
    const { time: times, value } = lane.level, most_ = lane.most || 1;
    pen.fillStyle = colour("--accent");
    pen.globalAlpha = 0.75;
    for (let i = 0; i < times.length; i++) {
      const until = i + 1 < times.length ? times[i + 1] : chart.end;
      if (until < from || times[i] > to || !value[i]) continue;
      const x = left + Math.max(0, (times[i] - from) * scale), end = left + Math.min(width(), (until - from) * scale);
      const rise = ((height - 6) * value[i]) / most_;
      pen.fillRect(x, top + height - 3 - rise, Math.max(end - x, 0.7), rise);
    }
    pen.globalAlpha = 1;
  };
  // Of a group: the share of its lanes that is busy, or the mean of its levels against the sum of their peaks.
  const sums = (group) => {
    const pixels = Math.max(1, Math.floor(width())), found = new Float64Array(pixels + 1), step = (to - from) / pixels || 1;
    const add = (begin, end, amount) => {
      const first = Math.max(0, (begin - from) / step), last = Math.min(pixels, (end - from) / step);
      for (let x = Math.floor(first); x < last; x++) found[x] += amount * (Math.min(last, x + 1) - Math.max(first, x));
    };
    for (const lane of group.lanes) {
      if (lane.level) lane.level.time.forEach((time_, i) => add(time_, i + 1 < lane.level.time.length ? lane.level.time[i + 1] : chart.end, lane.level.value[i]));
      else lane.begin.forEach((begin, i) => add(begin, lane.end[i], lane.share ? lane.share[i] : 1));
    }
    return found;
  };
  const drawGroup = (pen, group, top) => {
    const found = sums(group), levels = Boolean(group.lanes[0].level);
    const whole = levels ? group.lanes.reduce((sum, lane) => sum + lane.most, 0) || 1 : group.lanes.length;
    pen.fillStyle = colour("--accent");
    pen.globalAlpha = levels ? 0.75 : 1;
    for (let x = 0; x < found.length - 1; x++) {
      const rise = (height - 6) * Math.min(1, found[x] / whole);
      if (rise > 0) pen.fillRect(left + x, top + height - 3 - Math.max(rise, 0.7), 1, Math.max(rise, 0.7));
    }
    pen.globalAlpha = 1;
  };
  const ticks = () => {
    const rough = (to - from) / Math.max(2, Math.floor(width() / 110)), size = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough) || size;
    const found = [];
    for (let at = Math.ceil(from / step - 1e-9); at * step <= to + step * 1e-9; at++) found.push(at * step);
    return found;
  };
  const draw = () => {
    if (!canvas.clientWidth) return;
    const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
    const seen = Math.min(rows.length, most) * height, whole = seen + bottom;
    canvas.style.height = `${whole}px`;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = whole * ratio;
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    const longest = Math.max(60, ...rows.slice(0, 200).map((row) => pen.measureText(label(row)).width + 14));
    left = Math.round(Math.min(longest, canvas.clientWidth * 0.3, 260));
    const scale = width() / (to - from || 1), offset = window_.scrollTop;
    pen.strokeStyle = colour("--grid");
    for (const at of ticks()) {
      const x = left + (at - from) * scale;
      pen.globalAlpha = 0.6;
      pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, seen); pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.save();
    pen.beginPath(); pen.rect(0, 0, canvas.clientWidth, seen); pen.clip();
    rows.forEach((row, index) => {
      const top = index * height - offset;
      if (top < -height || top > seen) return;
      pen.fillStyle = colour("--text");
      pen.fillText(shortened(pen, label(row)), 0, top + 15);
      pen.fillStyle = colour("--grid");
      pen.fillRect(left, top + height - 1, width(), 1);
      if (!row.lane) drawGroup(pen, row.group, top);
      else if (row.lane.level) drawLevels(pen, row.lane, top, scale);
      else drawSpans(pen, row.lane, top, scale);
    });
    pen.restore();
    pen.fillStyle = colour("--faint");
    pen.textAlign = "center";
    for (const at of ticks()) {
      const x = left + (at - from) * scale;
      if (x > canvas.clientWidth - 24 || x < left - 1) continue;
      pen.fillText(`${Number(at.toPrecision(6)).toLocaleString("en-US")}`, x, seen + 18);
    }
    pen.textAlign = "left";
    pen.fillText(chart.unit, 0, seen + 18);
  };
  const rowAt = (event) => {
    const index = Math.floor((event.offsetY + (event.target === canvas ? window_.scrollTop : 0)) / height);
    return rows[index];
  };
  let moved = false;
  canvas.addEventListener("pointerdown", (event) => { held = time(event.offsetX); moved = false; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => {
    const row = rowAt(event);
    if (!moved && row && row.group) { row.group.open = !row.group.open; choose(); }
    held = null;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  const told = (event) => {
    const row = rowAt(event), at = time(event.offsetX), near = (to - from) / width();
    if (!row) return "";
    if (!row.lane) {
      const x = Math.floor(event.offsetX - left), levels = Boolean(row.group.lanes[0].level);
      const value = x < 0 ? 0 : sums(row.group)[x] || 0;
      const now = levels ? `${report.plain(Number(value.toPrecision(4)))} in all` : `${report.plain(Number(value.toPrecision(3)))} of ${row.group.lanes.length} busy`;
      return `${row.group.name}: ${x < 0 ? `${row.group.lanes.length} tracks` : now}; click to open`;
    }
    const lane = row.lane;
    if (event.offsetX < left) return lane.name;
    if (lane.level) {
      let i = lane.level.time.length - 1;
      while (i >= 0 && lane.level.time[i] > at) i--;
      return i < 0 ? "" : `${lane.name}: ${report.plain(lane.level.value[i])} (at most ${report.plain(lane.most)})`;
    }
    let found = -1;
    for (let i = lane.begin.length - 1; i >= 0 && found < 0; i--) if (lane.begin[i] <= at + near && lane.end[i] >= at - near) found = i;
    if (found < 0) return "";
    const show = (value) => `${report.plain(Number(value.toPrecision(6)), 6)} ${chart.unit}`;
    const busy = lane.share && lane.share[found] < 1 ? `, busy ${(100 * lane.share[found]).toFixed(0)}% of it` : "";
    return `${chart.names[lane.what[found]]}: ${show(lane.end[found] - lane.begin[found])} from ${show(lane.begin[found])}${busy}`;
  };
  canvas.addEventListener("pointermove", (event) => {
    if (held !== null) {
      const shift = held - time(event.offsetX), length = to - from;
      moved = moved || Math.abs(shift) > (3 * length) / width();
      from = Math.min(Math.max(chart.begin, from + shift), chart.end - length);
      to = from + length;
      draw();
      return;
    }
    const text = told(event);
    tip.hidden = !text;
    tip.textContent = text;
    tip.style.left = `${Math.max(0, Math.min(event.offsetX, canvas.clientWidth - 300))}px`;
    tip.style.top = `${event.offsetY + 16}px`;
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, time(event.offsetX));
  }, { passive: false });
  window_.addEventListener("scroll", draw);
  new ResizeObserver(draw).observe(spot);
  report.redraws.push(draw);
  choose();
};
