// How something went: live, over some hours, or over a day, as the node has kept it.

import { get } from "./api.js";
import { h, show } from "./dom.js";
import { plot } from "./plot.js";

const RANGES = [["hours", "3 hours"], ["day", "1 day"]];

/** A panel with a plot and a choice of its range.
 *
 * Series are [measure, label, colour's name, axis]; `live` is [button, note] where the
 * view brings points of its own by `set`, which are shown first.
 */
export function past(title, kind, name, series, live) {
  const ranges = live ? [["live", live[0]], ...RANGES] : RANGES;
  let range = ranges[0][0];
  let brought = null;
  const place = h("div", { class: "plot" });
  const note = h("span", { class: "faint" });
  const buttons = h("div", { class: "choices", role: "group", "aria-label": "Time range" });
  const lines = plot(place, series.map(([, ...rest]) => rest));

  const draw = async () => {
    const wanted = range;
    if (wanted === "live") {
      note.textContent = live[1];
      if (brought) lines.set(...brought);
      return;
    }
    try {
      const found = await get("history", { kind, name, range: wanted });
      if (wanted !== range) return;
      note.textContent = `of ${found.broker}, kept by its node`;
      lines.set(found.times_ms, ...series.map(([measure]) => found.series[measure]));
    } catch (error) {
      note.textContent = error.message;
    }
  };
  const choose = (wanted) => {
    range = wanted;
    show(buttons, ranges.map(([one, text]) => h("button", { type: "button", id: `range-${one}`, "aria-pressed": String(one === range), onclick: () => choose(one) }, text)));
    draw();
  };
  choose(range);
  return {
    element: h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), note, buttons), place),
    set(...points) {
      brought = points;
      if (range === "live") draw();
    },
    refresh: () => range !== "live" && draw(),
    close: lines.close,
  };
}
