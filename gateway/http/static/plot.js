// Lines over time, drawn by uPlot in the page's own colours.

import uPlot from "./vendor/uPlot.js";
import { compact } from "./format.js";

const HEIGHT = 240;
const LEAST_S = 60;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** A plot of series [label, colour's name, axis]; `set` takes times in ms and a list a series.
 *
 * Series with the axis "right" have a scale of their own, on that side.
 */
export function plot(place, series) {
  let chart = null;
  let data = null;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Without a pointer over it, the legend tells of the newest point.
  const newest = (drawn) => drawn && drawn.setLegend({ idx: data[0].length - 1 });
  const draw = () => {
    if (chart) chart.destroy();
    chart = null;
    if (!data || !place.isConnected) return;
    const high = { range: (_, low, most) => [Math.min(0, low ?? 0), Math.max((most ?? 0) * 1.1, 1)] };
    const two = series.some(([, , axis]) => axis === "right");
    const line = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    chart = new uPlot({
      width: Math.max(place.clientWidth, 200),
      height: HEIGHT,
      hooks: { ready: [newest] },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { range: () => [Math.min(data[0][0], data[0].at(-1) - LEAST_S), data[0].at(-1)] }, y: high, ...(two ? { right: high } : {}) },
      axes: [{ ...line, space: 90, values: (_, ticks) => ticks.map((at) => clock.format(at * 1000)) }, { ...line, size: 64, values: (_, ticks) => ticks.map(compact) },
        ...(two ? [{ ...line, size: 64, scale: "right", side: 1, grid: { show: false }, values: (_, ticks) => ticks.map(compact) }] : [])],
      series: [{ value: (_, at) => (at == null ? "–" : clock.format(at * 1000)) }, ...series.map(([label, name, axis]) => ({
        label: two ? `${label} (${axis === "right" ? "right" : "left"})` : label, scale: axis === "right" ? "right" : "y", stroke: colour(name), width: 2, fill: `${colour(name)}22`,
        points: { show: data[0].length < 3 }, value: (_, value) => (value == null ? "–" : compact(Math.round(value * 100) / 100)),
      }))],
    }, data, place);
  };
  const sized = new ResizeObserver(() => chart && chart.setSize({ width: Math.max(place.clientWidth, 200), height: HEIGHT }));
  sized.observe(place);
  document.addEventListener("theme", draw);
  return {
    set(times, ...values) {
      const first = !chart || data[0].length < 3 || times.length < 3;
      data = [times.map((ms) => ms / 1000), ...values];
      if (first) draw();
      else chart.setData(data);
      newest(chart);
    },
    close() {
      sized.disconnect();
      document.removeEventListener("theme", draw);
      if (chart) chart.destroy();
    },
  };
}
