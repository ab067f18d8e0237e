// Which experts the tokens go to, and how the load spreads.

function expertsSection() {
  const section = byId("experts");
  if (data.experts.length === 0) return section.append(el("p", { class: "none" }, "This model has no mixture of experts."));
  let byLoad = false;

  const order = (layer) => {
    const experts = layer.load.map((_, expert) => expert);
    return byLoad ? experts.sort((a, b) => layer.load[b] - layer.load[a] || a - b) : experts;
  };
  const tokensOf = (layer, expert) => {
    const number = layer.load[expert];
    return `${number} of ${tokens} token${tokens === 1 ? "" : "s"}, ${percent(number / (tokens * layer.chosen))} of the load`;
  };
  const load = (layer) => {
    const most = Math.max(...layer.load);
    const even = (tokens * layer.chosen) / layer.experts;
    const experts = order(layer);
    return {
      label: `Load of the experts of layer ${layer.layer}`,
      rows: 1,
      cols: layer.experts,
      columns: { kind: "ticks", number: (col) => String(byLoad ? col + 1 : col) },
      width: [3, 40],
      height: 130,
      axis: { most: String(most), level: even / most, levelName: count(even) },
      shade: (_, col) => layer.load[experts[col]] / most,
      describe: (_, col) => [
        heading(`layer ${layer.layer}, expert ${experts[col]}`),
        line(tokensOf(layer, experts[col])),
        line(`an even share is ${count(even)}`),
      ],
    };
  };

  // A token's experts, the heaviest first, as places in indexOf.
  const choicesOf = (layer) => {
    const places = [];
    for (let token = 0; token < tokens; ++token) {
      const own = Array.from({ length: layer.chosen }, (_, i) => token * layer.chosen + i);
      places.push(...own.sort((a, b) => layer.weightParts[b] - layer.weightParts[a]));
    }
    return places;
  };
  const choices = (layer) => {
    const places = choicesOf(layer);
    const place = (rank, token) => places[token * layer.chosen + rank];
    const weight = (at) => (layer.weightParts[at] / 65535) * layer.largest_weight;
    return {
      ...byToken,
      label: `Experts of layer ${layer.layer}, choices by tokens`,
      rows: layer.chosen,
      cols: tokens,
      rowNames: Array.from({ length: layer.chosen }, (_, rank) => ["1st", "2nd", "3rd"][rank] ?? `${rank + 1}th`),
      width: [36, 76],
      height: 23,
      shade: (rank, token) => layer.weightParts[place(rank, token)] / 65535,
      text: (rank, token) => String(layer.indexOf[place(rank, token)]),
      describe: (_, token) => [
        heading(`token ${token} `, quotedAt(token), `, layer ${layer.layer}`),
        barTable(Array.from({ length: layer.chosen }, (_, rank) => {
          const at = place(rank, token);
          return [`expert ${layer.indexOf[at]}`, layer.weightParts[at] / 65535, weight(at).toFixed(3)];
        })),
      ],
    };
  };
  // Thumbnails: bars of the load, from the heaviest on.
  const thumbnail = (layer) => {
    const sorted = [...layer.load].sort((a, b) => b - a);
    const rows = 32;
    return { rows, cols: layer.experts, shade: (row, col) => ((rows - row) / rows <= sorted[col] / sorted[0] ? 0.6 : NaN) };
  };

  const loadMatrix = new Matrix(load(data.experts[0]));
  const choiceMatrix = new Matrix(choices(data.experts[0]));
  const loadTitle = el("h3");
  const choiceTitle = el("h3");
  const weightTitle = "weight of the expert";
  const weightLegend = legend(weightTitle, []);
  const note = el("p", { class: "note" });
  let layer = data.experts[0];
  const orderButtons = ["by number", "by load"].map((name) => el("button", { type: "button", class: "option" }, name));
  const pressOrder = chooser(orderButtons, (index) => {
    byLoad = index === 1;
    pressOrder(index);
    loadMatrix.show(load(layer));
  });
  const choose = (index) => {
    layer = data.experts[index];
    layers.press(index);
    const idle = layer.load.filter((number) => number === 0).length;
    loadTitle.textContent = `Layer ${layer.layer}: tokens by expert`;
    choiceTitle.textContent = `Layer ${layer.layer}: the choices of each token, the heaviest first`;
    note.textContent = `${layer.chosen} of ${layer.experts} experts for each token; the busiest has ` +
      `${Math.max(...layer.load)} of ${tokens} token${tokens === 1 ? "" : "s"}; idle: ${idle}.`;
    relabel(weightLegend, weightTitle,
      [0, 0.25, 0.5, 0.75, 1].map((part) => [part, part === 0 ? "0" : (part * layer.largest_weight).toFixed(2)]));
    loadMatrix.show(load(layer));
    choiceMatrix.show(choices(layer));
  };
  const layers = strip("MoE layers, load of the experts", data.experts,
    { name: (each) => `layer ${each.layer}`, picture: thumbnail, choose, shape: "wide" });

  section.append(el("h3", {}, "Layers ", el("small", {}, "load of the experts, heaviest first")), layers.node, loadTitle, note,
    el("div", { class: "tools options", role: "group", "aria-label": "Order of the experts" }, ...orderButtons),
    loadMatrix.frame,
    choiceTitle, el("div", { class: "tools" }, weightLegend, choiceMatrix.zoom), choiceMatrix.frame);
  pressOrder(0);
  choose(0);
}
