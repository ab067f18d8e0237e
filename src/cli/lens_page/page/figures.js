// Numbers as people read them.

function percent(part) {
  if (part >= 0.99995) return "100 %";
  if (part >= 0.0995) return `${(part * 100).toFixed(1)} %`;
  return part >= 0.00005 ? `${(part * 100).toFixed(2)} %` : "< 0.01 %";
}

// Of a probability whose square root was kept in 255 steps: no more digits than that has.
function roughPercent(part) {
  if (part >= 0.0995) return `${(part * 100).toFixed(0)} %`;
  return part > 0 ? `${(part * 100).toPrecision(part >= 0.0095 ? 2 : 1)} %` : "0 %";
}

// A number of tokens: 0.012, 1.23, 12.3, 50, 1,234.
function count(number) {
  if (number === Infinity) return "∞";
  if (Number.isInteger(number) && number < 1e6) return number.toLocaleString("en");
  if (number >= 1e6) return number.toExponential(1).replace("e+", "e");
  if (number >= 100) return Math.round(number).toLocaleString("en");
  return number.toPrecision(number >= 1 ? 3 : 2);
}

const tokensLong = (number) => `${count(number)} token${number === 1 ? "" : "s"}`;

// 1, 2, 5, 10, 20, ...: the first that leaves `room` pixels between marks that are `pixels` apart.
function step(pixels, room) {
  for (let scale = 1; ; scale *= 10)
    for (const digit of [1, 2, 5]) if (digit * scale * pixels >= room) return digit * scale;
}

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
