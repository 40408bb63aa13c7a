// SPDX-License-Identifier: Apache-2.0
// Tables that sort, filter, turn pages and export.

report.compare = (a, b) => {
  if (a === null || b === null) return (a === null) - (b === null); // what is absent comes last
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
};

report.unitOf = (column, row) => (Array.isArray(column.unit) ? column.unit[row] : column.unit) || "";

report.cell = (column, row) => {
  const value = column.values[row];
  const href = column.links && column.links[row];
  const text = report.shown(value, report.unitOf(column, row));
  const look = column.number ? "number" : text.length <= 40 ? "short" : "long";
  const cell = report.make("td", { class: look }, href ? report.make("a", { href }, text) : text);
  if (column.bar && typeof value === "number") {
    const share = Math.max(0, Math.min(100, (100 * value) / (column.bar || 1)));
    cell.style.background = `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`;
  }
  return cell;
};

report.csv = (columns, rows) => {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const head = columns.flatMap((column) => (Array.isArray(column.unit) ? [column.name, "unit"]
    : [column.unit && column.unit !== "1" ? `${column.name} [${column.unit}]` : column.name]));
  const lines = rows.map((row) => columns.flatMap((column) => {
    const value = column.values[row] ?? "";
    return Array.isArray(column.unit) ? [value, column.unit[row]] : [value];
  }));
  return [head, ...lines].map((line) => line.map((each) => quoted(String(each))).join(",")).join("\n") + "\n";
};

report.save = (name, text) => {
  const link = report.make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
};

report.drawers.table = (spot, table) => {
  const { columns, size } = table, make = report.make, number = (value) => value.toLocaleString("en-US");
  const all = Array.from({ length: columns.length ? columns[0].values.length : 0 }, (_, row) => row);
  let rows = all, page = 0, sorted = -1, falling = false, words = null;
  const body = make("tbody"), count = make("span", { class: "count" });
  const heads = columns.map((column, index) =>
    make("th", { scope: "col", title: column.title || "", class: column.number ? "number" : "" },
      make("button", { type: "button", onclick: () => sort(index) }, column.name)));
  const filter = make("input", { type: "search", placeholder: "filter", "aria-label": "filter rows", oninput: () => choose() });
  const back = make("button", { type: "button", onclick: () => turn(-1) }, "‹ back");
  const next = make("button", { type: "button", onclick: () => turn(1) }, "next ›");
  const save = make("button", { type: "button", title: "save these rows as CSV", onclick: () => report.save("table.csv", report.csv(columns, rows)) }, "CSV");
  const draw = () => {
    const first = page * size;
    body.replaceChildren(...rows.slice(first, first + size).map((row) =>
      make("tr", {}, ...columns.map((column) => report.cell(column, row)))));
    const last = Math.min(rows.length, first + size);
    count.textContent = rows.length > size
      ? `rows ${number(first + 1)}–${number(last)} of ${number(rows.length)}`
      : `${number(rows.length)} row${rows.length === 1 ? "" : "s"}`;
    back.disabled = page === 0;
    next.disabled = last >= rows.length;
  };
  const turn = (step) => { page += step; draw(); };
  const choose = () => {
    words = words || all.map((row) => columns.map((column) => report.shown(column.values[row], report.unitOf(column, row))).join(" ").toLowerCase());
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = all.filter((row) => wanted.every((word) => words[row].includes(word)));
    if (sorted >= 0) order();
    page = 0;
    draw();
  };
  const order = () => {
    const values = columns[sorted].values, sign = falling ? -1 : 1;
    rows = rows.slice().sort((a, b) => (values[a] === null || values[b] === null ? 1 : sign) * report.compare(values[a], values[b]) || a - b);
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
  const tools = make("div", { class: "tools" }, filter, count, save);
  if (all.length > size) tools.append(back, next);
  if (all.length > 5) spot.append(tools);
  spot.append(make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)));
  draw();
};
