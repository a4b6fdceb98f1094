// Routes: where a topic's queues are, drawn.

import { get, part } from "../api.js";
import { h, s } from "../dom.js";
import { empty, head, loader, sheet } from "../parts.js";

const CELL = 30;
const ACROSS = 16;
const LEFT = 190;
const BOX = 250;

function draw(route) {
  let top = 12;
  const brokers = route.brokers.map((broker) => {
    const rows = Math.max(1, Math.ceil(broker.partitions.length / ACROSS));
    const height = Math.max(34 + 24 * Math.max(1, broker.nodes.length), rows * CELL + 24);
    const placed = { ...broker, top, height };
    top += height + 18;
    return placed;
  });
  const middle = (top - 18) / 2;
  const cells = LEFT + BOX + 70;
  const across = Math.min(ACROSS, Math.max(1, ...brokers.map((broker) => broker.partitions.length)));
  const width = cells + across * CELL + 12;
  const height = Math.max(top, 70);
  return s("svg", { class: "drawing", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary(route) },
    s("rect", { class: "box topic", x: 8, y: middle - 22, width: 130, height: 44, rx: 12 }),
    s("text", { x: 22, y: middle + 5 }, route.topic.length > 15 ? `${route.topic.slice(0, 14)}…` : route.topic),
    brokers.map((broker) => {
      const at = broker.top + broker.height / 2;
      return [
        s("path", { class: "rope", d: `M138 ${middle} C ${LEFT - 15} ${middle}, ${LEFT - 35} ${at}, ${LEFT} ${at}` }),
        s("path", { class: "rope", d: `M${LEFT + BOX} ${at} H ${cells - 12}` }),
        s("rect", { class: "box", x: LEFT, y: broker.top, width: BOX, height: broker.height, rx: 12 }),
        s("text", { x: LEFT + 16, y: broker.top + 24, "font-weight": "600" }, broker.name),
        broker.nodes.length ? broker.nodes.map((node, index) => [
          s("circle", { class: node.master ? "master" : "stand-by", cx: LEFT + 22, cy: broker.top + 43 + 24 * index, r: 5 }),
          s("text", { class: "dim", x: LEFT + 36, y: broker.top + 47 + 24 * index }, `${node.address}${node.master ? ", master" : ""}`),
        ]) : [
          s("circle", { class: "down", cx: LEFT + 22, cy: broker.top + 43, r: 5 }),
          s("text", { class: "dim", x: LEFT + 36, y: broker.top + 47 }, "does not run"),
        ],
        broker.partitions.map((partition, queue) => {
          const x = cells + (queue % ACROSS) * CELL;
          const y = at - (Math.ceil(broker.partitions.length / ACROSS) * CELL) / 2 + Math.floor(queue / ACROSS) * CELL;
          return s("g", {},
            s("title", {}, `queue ${queue} is partition ${partition}`),
            s("rect", { class: "cell", x, y, width: CELL - 4, height: CELL - 4, rx: 6 }),
            s("text", { class: "cell-text", x: x + (CELL - 4) / 2, y: y + 17 }, partition));
        }),
      ];
    }));
}

function summary(route) {
  return route.brokers.map((broker) => `${broker.name} has ${broker.partitions.length} queues of ${route.topic}`).join("; ");
}

export function view(root, { name }) {
  const input = h("input", { id: "topic", required: true, autocomplete: "off", spellcheck: "false", value: name });
  root.append(head("Routes", { sub: "Where a topic's queues are: its brokers, their nodes, and partitions of the log" }),
    h("form", { class: "bar", role: "search", onsubmit: (event) => {
      event.preventDefault();
      location.hash = `#/routes/${part(input.value.trim())}`;
    } }, h("label", { class: "field" }, h("span", {}, "Topic"), input), h("button", { type: "submit" }, "Draw")));
  const place = h("div", { class: "content" });
  root.append(place);
  if (!name) {
    loader(place, () => get("topics", { limit: 20 }), (found) => sheet("", found.total
      ? h("div", { class: "state" }, h("strong", {}, "Which topic?"), h("p", {}, "For example:"),
        h("p", { class: "badges" }, found.topics.slice(0, 8).map((one) => h("a", { class: "badge", href: `#/routes/${part(one.name)}` }, one.name))))
      : empty("No topics yet", "A topic is made by the first message that is sent to it.")));
    return {};
  }
  const refresh = loader(place, () => get(`routes/${part(name)}`), (route) => h("section", { class: "panel" },
    h("header", {}, h("h2", {}, name), h("span", { class: "faint" }, "each square is a queue, with the number of its partition")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Drawing" }, draw(route))));
  return { refresh };
}
