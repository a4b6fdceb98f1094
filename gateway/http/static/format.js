// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value) => whole.format(value);
export const compact = (value) => (value < 10000 ? whole.format(value) : short.format(value));

export function rate(value) {
  const digits = value >= 100 || value === 0 ? 0 : value < 10 ? 2 : 1;
  return `${value >= 1000 ? compact(Math.round(value)) : value.toFixed(digits)}/s`;
}

export const percent = (value) => `${Math.round(value * 100)} %`;

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit ? left.toFixed(1) : left} ${units[unit]}`;
}

// An estimate; null where there is none.
export const about = (value) => (value === null ? "unknown" : `~${bytes(value)}`);

const two = (value) => String(value).padStart(2, "0");

export function time(ms) {
  if (!ms) return "–";
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function span(ms) {
  const steps = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
  for (const [size, unit] of steps) {
    if (ms >= size) return `${Math.floor(ms / size)} ${unit}`;
  }
  return "now";
}
