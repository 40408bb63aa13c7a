// SPDX-License-Identifier: Apache-2.0
// Annotated listings: source, PTX and SASS beside each other; a click on a line marks what belongs to it in the others.

report.drawers.listing = (spot, listing) => {
  const make = report.make, panes = [];
  const mark = (chosen, from) => {
    for (const pane of panes) {
      let first = null;
      for (const [row, element] of pane.rows) {
        const same = row === chosen
          || (chosen.source !== null && row.source === chosen.source && (pane !== from || from.kind === "source"))
          || (chosen.ptx !== null && row.ptx === chosen.ptx && pane.kind !== "source");
        const fits = same && !(chosen.ptx !== null && from.kind === "ptx" && pane.kind === "sass" && row.ptx !== null && row.ptx !== chosen.ptx);
        element.classList.toggle("marked", fits);
        if (fits && !first) first = element;
      }
      if (first && pane !== from) pane.box.scrollTop = first.offsetTop - pane.box.clientHeight / 3;
    }
  };
  const drawPane = (data) => {
    const pane = { kind: data.kind, rows: new Map(), box: make("div", { class: "code-box", tabindex: "0" }) };
    const body = make("tbody"), most = Math.max(1e-9, ...data.rows.map((row) => row.percent || 0));
    const columns = [
      ["stalls", (row) => (row.percent ? report.shown(row.percent, "%") : ""), (row) => -(row.percent || 0)],
      ["mostly", (row) => row.reason || "", (row) => row.reason || "~"],
      ["executions", (row) => (row.executed ? report.shown(row.executed) : ""), (row) => -(row.executed || 0)],
      ["bytes", (row) => (row.bytes ? report.shown(row.bytes, "B") : ""), (row) => -(row.bytes || 0)],
      ["line", (row) => row.line, (row) => row.index], ["code", (row) => row.text, (row) => row.index],
    ];
    data.rows.forEach((row, index) => {
      row.index = index;
      const element = make("tr", { onclick: () => mark(row, pane) }, ...columns.map(([name, text]) =>
        make("td", { class: name === "code" ? "code" : name === "mostly" ? "short" : "number" }, text(row))));
      const share = (100 * (row.percent || 0)) / most;
      if (share) element.cells[0].style.background = `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`;
      pane.rows.set(row, element);
    });
    const order = (key) => body.replaceChildren(...[...pane.rows.entries()]
      .sort(([a], [b]) => report.compare(key(a), key(b)) || a.index - b.index).map(([, element]) => element));
    const heads = columns.map(([name, , key]) => make("th", { class: name === "code" || name === "mostly" ? "" : "number" },
      make("button", { type: "button", title: `sort by ${name}`, onclick: () => order(key) }, name)));
    order((row) => row.index);
    pane.box.append(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
    panes.push(pane);
    return make("div", { class: "pane" }, make("h4", {}, data.title), pane.box);
  };
  spot.append(make("div", { class: "panes" }, ...listing.panes.map(drawPane)));
};
