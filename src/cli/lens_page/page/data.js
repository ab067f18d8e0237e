// What the program found: the JSON in the page, its matrices unpacked when they are first asked for.

const data = JSON.parse(byId("data").textContent);

function unpack(text, Numbers) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return new Numbers(bytes.buffer);
}

// Adds `matrices`, name -> [packed name, type], as properties that unpack themselves once.
function unpacking(object, matrices) {
  for (const [name, [packed, Numbers]] of Object.entries(matrices))
    Object.defineProperty(object, name, {
      get() {
        const numbers = unpack(object[packed], Numbers);
        Object.defineProperty(object, name, { value: numbers });
        return numbers;
      },
      configurable: true,
    });
  return object;
}

const tokens = data.ids.length;
const lastToken = tokens - 1;

const guesses = unpacking(data.logit_lens, {
  guessIds: ["ids", Int32Array],
  guessParts: ["probabilities", Uint16Array],
  ranks: ["actual_ranks", Uint32Array],
  rankParts: ["actual_probabilities", Uint16Array],
});
for (const layer of data.attention.layers) unpacking(layer, { roots: ["patterns", Uint8Array] });
for (const layer of data.kda)
  unpacking(layer, {
    channelCodes: ["half_lives", Uint16Array],
    tokenCodes: ["token_half_lives", Uint16Array],
    betaParts: ["betas", Uint8Array],
  });
for (const layer of data.experts)
  unpacking(layer, { indexOf: ["indices", Uint16Array], weightParts: ["weights", Uint16Array] });

// log2 of a half-life in tokens, from its code.
const log2HalfLife = (code) => (code === 65535 ? Infinity : code / 1000 - 16);

// A token as text, with its spaces to be seen; its number where there is no text.
function textOf(id) {
  const text = data.texts[id];
  return text === undefined ? String(id) : text.replaceAll(" ", "·");
}
const textAt = (token) => textOf(data.ids[token]);

// A token in a sentence: isolated, so that text that runs from right to left does not turn the sentence around.
function quoted(id) {
  const space = () => el("span", { class: "space" }, "·");
  const pieces = textOf(id).split("·").flatMap((piece, i) => (i === 0 ? [piece] : [space(), piece]));
  return el("bdi", { class: "token" }, ...pieces);
}
const quotedAt = (token) => quoted(data.ids[token]);

const triangle = (rows) => (rows * (rows + 1)) / 2;
