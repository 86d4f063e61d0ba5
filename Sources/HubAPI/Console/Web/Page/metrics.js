// Prometheus' text as numbers, and what the last minute says.

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

// The answering node's numbers come first. Those of another follow a line with its name, and carry it as the label `node`.
const NODE = /^# node (\w+)$/;

export function parse(text) {
  const families = new Map(), nodes = [""];
  for (const line of text.split("\n")) {
    const node = NODE.exec(line);
    if (node) nodes.push(node[1]);
    if (!line || line[0] === "#") continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const labels = nodes.length > 1 ? { node: nodes.at(-1) } : {};
    for (const [, name, value] of (found[2] ?? "").matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    const value = found[3] === "+Inf" ? Infinity : Number(found[3]);
    if (!families.has(found[1])) families.set(found[1], []);
    families.get(found[1]).push({ labels, value });
  }
  return {
    all: (name) => families.get(name) ?? [],
    sum: (name, holds = () => true) => (families.get(name) ?? []).reduce((all, one) => (holds(one.labels) ? all + one.value : all), 0),
    max: (name) => Math.max(0, ...(families.get(name) ?? []).map((one) => one.value)),
    has: (name) => families.has(name),
    nodes,
  };
}

// The bound below which a share of the values between two readings lies, in seconds; null without values.
export function quantile(share, name, now, before, holds = () => true) {
  const counts = new Map();
  for (const [reading, sign] of [[now, 1], [before, -1]]) {
    for (const { labels, value } of reading?.all(`${name}_bucket`) ?? []) {
      if (!holds(labels)) continue;
      const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
    }
  }
  const bounds = [...counts].sort((a, b) => a[0] - b[0]);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const found = bounds.find(([, number]) => number >= share * total)?.[0] ?? null;
  return found === Infinity ? bounds.at(-2)?.[0] ?? null : found;
}
