// SPDX-License-Identifier: Apache-2.0
// The page begins: what is open is drawn, what is folded when somebody opens it.

report.items = null;
report.drawn = new WeakSet();
report.library = null;

report.isOpen = (spot) => {
  for (let fold = spot.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (!fold.open) return false;
  }
  return true;
};

report.drawIn = async (root) => {
  const spots = [...root.querySelectorAll("[data-item]")].filter((spot) => !report.drawn.has(spot) && report.isOpen(spot));
  spots.forEach((spot) => report.drawn.add(spot));
  const charts = spots.filter((spot) => spot.dataset.kind === "chart");
  for (const spot of spots) {
    const draw = report.drawers[spot.dataset.kind];
    if (draw) draw(spot, report.items[spot.dataset.item]);
  }
  if (!charts.length) return;
  report.library = report.library || report.unpack("plotly").then((text) => document.head.append(report.make("script", {}, text)));
  await report.library;
  for (const spot of charts) {
    await report.drawChart(spot, report.items[spot.dataset.item]);
    await new Promise((resolve) => setTimeout(resolve)); // the page stays alive while many charts are drawn
  }
};

report.show = (id) => {
  const target = id && document.getElementById(id);
  for (let fold = target; fold; fold = fold.parentElement.closest("details")) {
    if (fold.tagName === "DETAILS") fold.open = true;
  }
  if (target) target.scrollIntoView();
};

report.unfold = async (open) => {
  document.querySelectorAll("details.section").forEach((fold) => { fold.open = open; });
  if (open) await report.drawIn(document);
};

report.failed = (error) => {
  report.errors.push(String(error));
  document.getElementById("trouble").textContent =
    `This page could not draw all of itself (${error}). It needs a browser of 2023 or later.`;
};

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => report.redraws.forEach((redraw) => redraw()));
document.addEventListener("toggle", (event) => {
  if (event.target.open && report.items) report.drawIn(event.target).catch(report.failed);
}, true);
window.addEventListener("hashchange", () => report.show(location.hash.slice(1)));
document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest('a[href^="#"]');
  if (link) report.show(link.getAttribute("href").slice(1));
});
window.addEventListener("beforeprint", () => { report.unfold(true); });
document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("unfold");
  if (button) {
    button.addEventListener("click", () => {
      const open = button.textContent === "open all";
      button.textContent = open ? "close all" : "open all";
      report.unfold(open).catch(report.failed);
    });
  }
  report.unpack("items").then((text) => {
    report.items = JSON.parse(text);
    report.show(location.hash.slice(1));
    return report.drawIn(document);
  }).catch(report.failed).finally(() => {
    window.manyscaleReport = report;
    report.ready = (performance.now() - report.began) / 1000;
    document.body.dataset.ready = report.errors.length ? "with errors" : "yes";
  });
});
