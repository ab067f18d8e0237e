// The logit lens: what each layer's stream would say of the next token.

function logitLensSection() {
  const { rows, guesses: each, guessIds, guessParts, ranks, rankParts } = guesses;
  const cell = (row, token) => row * tokens + token;
  const kinds = new Map([...data.kda.map((l) => [l.layer, "KDA"]), ...data.attention.layers.map((l) => [l.layer, "MLA"])]);
  const name = (row) => (row === 0 ? "embedding" : `${row - 1} ${kinds.get(row - 1)}`);

  const describe = (row, token) => {
    const at = cell(row, token);
    const after = row === 0 ? "after the embedding" : `after layer ${row - 1}`;
    const table = [];
    for (let i = 0; i < each; ++i) {
      const part = guessParts[at * each + i] / 65535;
      table.push([quoted(guessIds[at * each + i]), part, percent(part)]);
    }
    const actual = token === lastToken
      ? line("Nothing follows in the prompt.")
      : line("Next is ", quotedAt(token + 1), `: rank ${ranks[at].toLocaleString("en")}, ${percent(rankParts[at] / 65535)}`);
    return [heading(`token ${token} `, quotedAt(token), ` ${after}`), barTable(table), actual];
  };

  const matrix = new Matrix({
    ...byToken,
    label: "Logit lens, layers by tokens",
    rows,
    cols: tokens,
    rowNames: Array.from({ length: rows }, (_, row) => name(row)),
    rowNumber: (row) => name(row),
    width: [76, 190],
    height: 23,
    shade: (row, token) => guessParts[cell(row, token) * each] / 65535,
    text: (row, token) => textOf(guessIds[cell(row, token) * each]),
    mark: (row, token) => ranks[cell(row, token)] === 1,
    describe,
  });
  byId("logit-lens").append(
    el("div", { class: "tools" },
      legend("probability of the guess", [[0, "0"], [0.25, "25 %"], [0.5, "50 %"], [0.75, "75 %"], [1, "100 %"]]), matrix.zoom),
    matrix.frame);
}
