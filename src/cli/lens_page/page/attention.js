// Where the heads of the MLA layers look.

function attentionSection() {
  const section = byId("attention");
  const { block, layers } = data.attention;
  if (layers.length === 0) return section.append(el("p", { class: "none" }, "This model has no MLA layers."));
  const side = Math.ceil(tokens / block);
  const cells = triangle(side);
  const root = (layer, head, query, key) => (key <= query ? layer.roots[head * cells + triangle(query) + key] / 255 : NaN);

  // Of all heads: the mean probability, by its root.
  const mean = (layer) => {
    const sums = new Float32Array(cells);
    for (let head = 0, at = 0; head < layer.heads; ++head)
      for (let i = 0; i < cells; ++i, ++at) sums[i] += layer.roots[at] ** 2;
    return (query, key) => (key <= query ? Math.sqrt(sums[triangle(query) + key] / layer.heads) / 255 : NaN);
  };
  const square = (shade) => ({ rows: side, cols: side, shade });

  let layer = layers[0];
  let head = 0;
  const tokensOf = (cell) => {
    const begin = cell * block;
    const end = Math.min(begin + block, tokens) - 1;
    if (begin === end) return [`token ${begin} `, quotedAt(begin)];
    return [`tokens ${begin} `, quotedAt(begin), ` to ${end} `, quotedAt(end)];
  };
  const cellName = (cell) => textAt(cell * block);
  const cellNumber = (cell) => String(cell * block);
  const large = () => ({
    label: `Attention of layer ${layer.layer}, head ${head}, queries by keys`,
    rows: side,
    cols: side,
    rowNames: Array.from({ length: side }, (_, cell) => cellName(cell)),
    rowNumber: cellNumber,
    columns: { kind: "tokens", name: cellName, number: cellNumber },
    width: [2, 64],
    square: 700,
    shade: (query, key) => root(layer, head, query, key),
    choose: (query) => selectToken(query * block),
    chosenRow: () => (selection.token < 0 ? -1 : Math.floor(selection.token / block)),
    describe: (query, key) => [
      heading(`layer ${layer.layer}, head ${head}`),
      line("from ", ...tokensOf(query)),
      line("to ", ...tokensOf(key)),
      line(block > 1 ? "largest probability " : "probability ", el("b", {}, roughPercent(root(layer, head, query, key) ** 2))),
    ],
  });

  const matrix = new Matrix(large());
  const title = el("h3");
  const headsPlace = el("div", { class: "heads" });
  let heads;
  const chooseHead = (index) => {
    head = index;
    heads.press(head);
    title.textContent = `Layer ${layer.layer}, head ${head}`;
    matrix.show(large());
  };
  const headPicture = (index) => square((query, key) => root(layer, index, query, key));
  const chooseLayer = (index) => {
    layer = layers[index];
    layerStrip.press(index);
    heads?.forget();
    heads = strip(`Heads of layer ${layer.layer}`, Array.from({ length: layer.heads }, (_, i) => i),
      { name: (index) => `head ${index}`, picture: headPicture, choose: chooseHead, shape: "squares" });
    headsPlace.replaceChildren(heads.node);
    chooseHead(Math.min(head, layer.heads - 1));
  };
  const layerStrip = strip("MLA layers, mean of their heads", layers,
    { name: (each) => `layer ${each.layer}`, picture: (each) => square(mean(each)), choose: chooseLayer, shape: "squares" });

  if (block > 1)
    section.append(el("p", { class: "note" },
      `The prompt is long: a cell stands for ${block} by ${block} tokens, and shows the largest probability among them.`));
  section.append(
    el("div", { class: "beside" },
      el("div", {},
        el("h3", {}, "Layers ", el("small", {}, "mean of the heads")), layerStrip.node,
        el("h3", {}, "Heads"), headsPlace),
      el("div", {}, title,
        el("div", { class: "tools" },
          legend("probability", [0, 0.01, 0.05, 0.25, 0.5, 1].map((p) => [Math.sqrt(p), p === 0 ? "0" : `${p * 100} %`]))),
        matrix.frame)));
  chooseLayer(0);
}
