// What the KDA layers keep, and what they write: half-lives of channels, half-lives along the prompt, betas.

// The scale of half-lives that all layers share: whole powers of ten around nearly all channels.
function halfLifeScale() {
  const all = data.kda.flatMap((layer) => [...layer.channelCodes]).sort((a, b) => a - b);
  const power = (part, round) => round(log2HalfLife(Math.min(all[Math.floor(part * (all.length - 1))], 65534)) * Math.log10(2));
  const low = clamp(power(0.02, Math.floor), -3, 6);
  const high = Math.max(clamp(power(0.98, Math.ceil), -3, 7), low + 1);
  const marks = [];
  for (let p = low; p <= high; ++p)
    marks.push([(p - low) / (high - low), p < 0 ? (10 ** p).toFixed(-p) : (10 ** p).toLocaleString("en")]);
  return {
    shade: (code) => clamp((log2HalfLife(code) * Math.log10(2) - low) / (high - low), 0, 1),
    legend: () => legend("half-life in tokens, cut at the ends", marks),
  };
}

const headNames = (layer) => Array.from({ length: layer.heads }, (_, head) => `head ${head}`);
const headHeight = (layer) => clamp(Math.round(400 / layer.heads), 12, 26);

// The channels of each head, the longest-lived first, as places in channelCodes.
function sortedChannels(layer) {
  const order = [];
  for (let head = 0; head < layer.heads; ++head) {
    const own = Array.from({ length: layer.channels }, (_, channel) => head * layer.channels + channel);
    order.push(...own.sort((a, b) => layer.channelCodes[b] - layer.channelCodes[a]));
  }
  return order;
}

function summary(layer) {
  const sorted = Float64Array.from(layer.channelCodes).sort();
  const at = (part) => count(2 ** log2HalfLife(sorted[Math.round(part * (sorted.length - 1))]));
  return `Of ${sorted.length.toLocaleString("en")} channels half live longer than ${at(0.5)} tokens, a tenth longer than ` +
    `${at(0.9)}, a tenth shorter than ${at(0.1)}.`;
}

function kdaSections() {
  const memory = byId("memory");
  const betas = byId("betas");
  if (data.kda.length === 0) {
    for (const section of [memory, betas]) section.append(el("p", { class: "none" }, "This model has no KDA layers."));
    return;
  }
  const scale = halfLifeScale();
  const orders = new Map(data.kda.map((layer) => [layer, sortedChannels(layer)]));
  const halfLife = (code) => tokensLong(2 ** log2HalfLife(code));

  const channels = (layer) => {
    const place = (head, rank) => orders.get(layer)[head * layer.channels + rank];
    const code = (head, rank) => layer.channelCodes[place(head, rank)];
    return {
      label: `Half-lives of layer ${layer.layer}, heads by channels`,
      rows: layer.heads,
      cols: layer.channels,
      rowNames: headNames(layer),
      columns: { kind: "ticks", room: 60, number: (rank) => (rank === 0 ? "longest" : String(rank)) },
      width: [2, 14],
      height: headHeight(layer),
      shade: (head, rank) => scale.shade(code(head, rank)),
      describe: (head, rank) => [
        heading(`layer ${layer.layer}, head ${head}, channel ${place(head, rank) - head * layer.channels}`),
        line("half-life ", el("b", {}, halfLife(code(head, rank)))),
        line(`${rank + 1} of ${layer.channels} from the longest`),
      ],
    };
  };
  const alongPrompt = (layer) => {
    const code = (head, token) => layer.tokenCodes[token * layer.heads + head];
    return {
      ...byToken,
      label: `Half-lives of layer ${layer.layer}, heads by tokens`,
      rows: layer.heads,
      cols: tokens,
      rowNames: headNames(layer),
      width: [3, 96],
      height: headHeight(layer),
      shade: (head, token) => scale.shade(code(head, token)),
      describe: (head, token) => [
        heading(`token ${token} `, quotedAt(token), `, layer ${layer.layer}, head ${head}`),
        line("half-life at this token ", el("b", {}, halfLife(code(head, token)))),
        line(`geometric mean of ${layer.channels} channels`),
      ],
    };
  };
  const betasOf = (layer) => {
    const beta = (head, token) => layer.betaParts[token * layer.heads + head] / 255;
    return {
      ...byToken,
      label: `Betas of layer ${layer.layer}, heads by tokens`,
      rows: layer.heads,
      cols: tokens,
      rowNames: headNames(layer),
      width: [3, 96],
      height: headHeight(layer),
      shade: beta,
      describe: (head, token) => [
        heading(`token ${token} `, quotedAt(token), `, layer ${layer.layer}, head ${head}`),
        line("beta ", el("b", {}, beta(head, token).toFixed(2))),
      ],
    };
  };

  const [channelMatrix, tokenMatrix, betaMatrix] = [channels, alongPrompt, betasOf]
    .map((spec) => new Matrix(spec(data.kda[0])));
  const titles = Array.from({ length: 3 }, () => el("h3"));
  const sentence = el("p", { class: "note" });
  const choose = (index) => {
    const layer = data.kda[index];
    for (const each of strips) each.press(index);
    titles[0].textContent = `Layer ${layer.layer}: channels of each head, longest first`;
    titles[1].textContent = `Layer ${layer.layer}: along the prompt`;
    titles[2].textContent = `Layer ${layer.layer}`;
    sentence.textContent = summary(layer);
    channelMatrix.show(channels(layer));
    tokenMatrix.show(alongPrompt(layer));
    betaMatrix.show(betasOf(layer));
  };
  const name = (layer) => `layer ${layer.layer}`;
  const strips = [strip("KDA layers, half-lives", data.kda, { name, picture: channels, choose, shape: "wide" }),
    strip("KDA layers, betas", data.kda, { name, picture: betasOf, choose, shape: "wide" })];

  memory.append(el("div", { class: "tools" }, scale.legend()), el("h3", {}, "Layers ", el("small", {}, "heads by channels")),
    strips[0].node, titles[0], sentence, channelMatrix.frame, titles[1],
    el("p", { class: "note" }, "The mean half-life of each head’s channels, if every token’s decay were this one’s."),
    tokenMatrix.frame);
  betas.append(
    el("div", { class: "tools" }, legend("beta", [[0, "0"], [0.25, "0.25"], [0.5, "0.5"], [0.75, "0.75"], [1, "1"]])),
    el("h3", {}, "Layers ", el("small", {}, "heads by tokens")), strips[1].node, titles[2], betaMatrix.frame);
  choose(0);
}
