// The cluster: how much goes through it, and how each broker does.

import { get } from "../api.js";
import { h } from "../dom.js";
import { clock, compact, count, percent, rate, span } from "../format.js";
import { badge, head, loader, sheet, table, tiles } from "../parts.js";
import { past } from "../past.js";

const KEPT = 360;
// Of all visits, so that going elsewhere and coming back loses nothing.
const seen = [];

function sum(brokers, name) {
  return brokers.reduce((total, one) => total + (one.runtime ? one.runtime[name] : 0), 0);
}

function broker(one) {
  const [master, ...others] = one.nodes;
  return {
    ...one,
    state: one.error ? badge("down", "bad") : badge("up", "good"),
    at: master ? master.address : "–",
    others: others.length,
  };
}

// Brokers count from their start, where that was today.
function today(brokers) {
  const started = Math.max(0, ...brokers.map((one) => one.runtime.started_ms));
  return started > new Date().setHours(0, 0, 0, 0) ? `In since ${clock(started)}` : "In today";
}

export function view(root) {
  const content = h("div", { class: "content" });
  const lines = past("Messages a second", "broker", "", [["in", "in", "--accent"], ["out", "out", "--warn"]],
    ["Since opened", "of all brokers, since this page was opened"]);
  const took = past("Send latency, ms", "broker", "", [["send_ms", "mean of a send, ms", "--accent"]]);
  root.append(head("Overview"), content, lines.element, took.element);
  const refresh = loader(content, () => get("overview"), (found) => {
    const running = found.brokers.filter((one) => !one.error);
    seen.push([Date.now(), sum(running, "in_rate"), sum(running, "out_rate")]);
    if (seen.length > KEPT) seen.shift();
    lines.set(...[0, 1, 2].map((column) => seen.map((point) => point[column])));
    lines.refresh();
    took.refresh();
    const down = found.brokers.length - running.length;
    return h("div", { class: "stack" },
      tiles([
        ["Brokers up", `${running.length} of ${found.brokers.length}`, down ? "bad" : ""],
        ["Topics", count(found.topics)],
        ["Groups", count(found.groups)],
        ["In", rate(sum(running, "in_rate"))],
        ["Out", rate(sum(running, "out_rate"))],
        [today(running), compact(sum(running, "in_today"))],
      ]),
      sheet("Brokers",
        table("Brokers", [
          ["Broker", (one) => [h("strong", {}, one.name), one.error && h("p", { class: "faint" }, one.error)], "name"],
          ["State", (one) => one.state],
          ["Master", (one) => h("span", { class: "mono" }, one.at)],
          ["Replicas", (one) => count(one.others), "right"],
          ["In", (one) => (one.runtime ? rate(one.runtime.in_rate) : "–"), "right"],
          ["Out", (one) => (one.runtime ? rate(one.runtime.out_rate) : "–"), "right"],
          ["Disk", (one) => (one.runtime && one.runtime.disk_used != null ? percent(one.runtime.disk_used) : "–"), "right"],
          ["Up for", (one) => (one.runtime ? span(Date.now() - one.runtime.started_ms) : "–"), "right"],
          ["Version", (one) => (one.runtime ? one.runtime.version.replace(/^Ropeway /, "") : "–")],
        ], found.brokers.map(broker))),
      h("p", { class: "faint" }, `Messages are kept ${found.log === "Pulsar" ? "on Apache Pulsar" : "in the embedded log"}, routes in ${found.routes === "ZooKeeper" ? "ZooKeeper" : "the embedded store"}. You are asking ${found.node.name}, which ${found.node.role.startsWith("waits") ? found.node.role : `${found.node.role} ${found.node.broker}`}.`));
  });
  return { refresh, close: () => [lines, took].forEach((one) => one.close()) };
}
