// What was read, token by token, and what the model says comes next.

function facts() {
  const layers = data.logit_lens.rows - 1;
  const kinds = [
    [data.kda.length, "KDA"],
    [data.attention.layers.length, "MLA"],
    [data.experts.length, "MoE"],
  ].filter(([number]) => number > 0);
  const parts = [`${tokens} token${tokens === 1 ? "" : "s"}`, `${layers} layers`, ...kinds.map(([n, kind]) => `${n} ${kind}`)];
  byId("model").textContent = data.model;
  byId("facts").textContent = parts.join(" · ");
  document.title = `${data.model}, ${parts[0]} – kilin lens`;
}

function promptSection() {
  const chips = data.ids.map((id, token) =>
    el("button", { type: "button", class: "chip", title: `token ${token}, id ${id}` }, quoted(id)));
  const press = chooser(chips, selectToken);
  const kind = data.has_texts ? "chips" : "chips ids";
  const flow = el("div", { class: kind, role: "group", "aria-label": "Tokens of the prompt" });
  chips.forEach((chip, token) => {
    flow.append(chip);
    if (textAt(token).endsWith("\\n")) flow.append(el("br"));
  });
  selection.listeners.push(() => press(selection.token));

  const last = (data.logit_lens.rows * tokens - 1) * guesses.guesses;
  const next = [];
  for (let i = 0; i < guesses.guesses; ++i) {
    const part = guesses.guessParts[last + i] / 65535;
    next.push([quoted(guesses.guessIds[last + i]), part, percent(part)]);
  }
  byId("prompt").append(flow, el("h3", {}, "Likeliest next tokens"), barTable(next));
}
