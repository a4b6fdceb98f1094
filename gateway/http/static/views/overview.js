// The cluster: how much goes through it, and how each broker does.

import { get } from "../api.js";
import { h } from "../dom.js";
import { compact, count, percent, rate, span } from "../format.js";
import { badge, head, loader, sheet, table, tiles } from "../parts.js";
import { plot } from "../plot.js";

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

export function view(root) {
  const content = h("div", { class: "content" });
  const place = h("div", { class: "plot" });
  const lines = plot(place, [["in", "--accent"], ["out", "--warn"]]);
  const through = h("section", { class: "panel" },
    h("header", {}, h("h2", {}, "Messages a second"), h("span", { class: "faint" }, "all brokers, since this page was opened")),
    place);
  root.append(head("Overview"), content, through);
  const refresh = loader(content, () => get("overview"), (found) => {
    const running = found.brokers.filter((one) => !one.error);
    seen.push([Date.now(), sum(running, "in_rate"), sum(running, "out_rate")]);
    if (seen.length > KEPT) seen.shift();
    lines.set(...[0, 1, 2].map((column) => seen.map((point) => point[column])));
    const down = found.brokers.length - running.length;
    return h("div", { class: "stack" },
      tiles([
        ["Brokers up", `${running.length} of ${found.brokers.length}`, down ? "bad" : ""],
        ["Topics", count(found.topics)],
        ["Groups", count(found.groups)],
        ["In", rate(sum(running, "in_rate"))],
        ["Out", rate(sum(running, "out_rate"))],
        ["In today", compact(sum(running, "in_today"))],
      ]),
      sheet("Brokers",
        table("Brokers", [
          ["Broker", (one) => [h("strong", {}, one.name), one.error && h("p", { class: "faint" }, one.error)], "name"],
          ["State", (one) => one.state],
          ["Master", (one) => h("span", { class: "mono" }, one.at)],
          ["Stand by", (one) => count(one.others), "right"],
          ["In", (one) => (one.runtime ? rate(one.runtime.in_rate) : "–"), "right"],
          ["Out", (one) => (one.runtime ? rate(one.runtime.out_rate) : "–"), "right"],
          ["Disk", (one) => (one.runtime && one.runtime.disk_used != null ? percent(one.runtime.disk_used) : "–"), "right"],
          ["Up for", (one) => (one.runtime ? span(Date.now() - one.runtime.started_ms) : "–"), "right"],
          ["Version", (one) => (one.runtime ? one.runtime.version.replace(/^Ropeway /, "") : "–")],
        ], found.brokers.map(broker))),
      h("p", { class: "faint" }, `Messages are kept ${found.log === "Pulsar" ? "on Apache Pulsar" : "in the embedded log"}, routes in ${found.routes === "ZooKeeper" ? "ZooKeeper" : "the embedded store"}. You are asking ${found.node.name}, which ${found.node.role.startsWith("waits") ? found.node.role : `${found.node.role} ${found.node.broker}`}.`));
  });
  return { refresh, close: lines.close };
}
