// One scale of colours for every picture: from the colour of paper over green and blue to indigo, or from night to yellow in
// the dark scheme. Lightness runs one way all along, so it can be read in grey, in print and by every kind of colour vision.

// Control points in OKLCh, evenly spaced: lightness, chroma, hue in degrees.
const kLightPoints = [[0.972, 0.012, 95], [0.86, 0.075, 160], [0.68, 0.105, 205], [0.47, 0.13, 260], [0.27, 0.11, 285]];
const kDarkPoints = [[0.235, 0.03, 270], [0.37, 0.105, 275], [0.55, 0.12, 235], [0.75, 0.12, 175], [0.94, 0.12, 105]];

const darkScheme = matchMedia("(prefers-color-scheme: dark)");

// OKLab, Björn Ottosson, to sRGB of 0 to 255, cut where the screen has no such colour.
function rgbOf(lightness, a, b) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const curved = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
    return Math.round(clamp(curved, 0, 1) * 255);
  });
}

// Relative luminance and contrast as WCAG 2 has them.
function luminance(rgb) {
  const [r, g, b] = rgb.map((byte) => (byte <= 10 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);

// 256 colours, and for each the colour of text that can be read on it, black or white: 4.58 to 1 at worst.
const ramp = { rgb: [], css: [], ink: [], words: new Uint32Array(256) };

function mixRamp() {
  const points = (darkScheme.matches ? kDarkPoints : kLightPoints).map(([lightness, chroma, hue]) => {
    const angle = (hue * Math.PI) / 180;
    return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
  });
  for (let level = 0; level < 256; ++level) {
    const place = (level / 255) * (points.length - 1);
    const first = Math.min(Math.floor(place), points.length - 2);
    const rgb = rgbOf(...points[first].map((x, i) => x + (points[first + 1][i] - x) * (place - first)));
    const light = luminance(rgb);
    ramp.rgb[level] = rgb;
    ramp.css[level] = `rgb(${rgb})`;
    ramp.ink[level] = contrast(light, 0) >= contrast(light, 1) ? "#000" : "#fff";
    ramp.words[level] = (255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]; // as ImageData has it
  }
}

// A shade of 0 to 1 as a level of the ramp; -1 for one that is no number, where nothing is painted.
const levelOf = (shade) => (shade >= 0 ? Math.round(Math.min(shade, 1) * 255) : shade < 0 ? 0 : -1);

// The page's own colours, for canvases.
const inks = {};
function readInks() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["surface", "ink", "muted", "line", "accent"]) inks[name] = style.getPropertyValue(`--${name}`).trim();
  inks.font = getComputedStyle(document.body).fontFamily;
}

function readColors() {
  mixRamp();
  readInks();
}

// A picture of one pixel a cell, to be stretched. @param shade (row, col) -> 0 to 1, or NaN
function bitmapOf(rows, cols, shade, canvas = document.createElement("canvas")) {
  canvas.width = cols;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(cols, rows);
  const words = new Uint32Array(image.data.buffer);
  for (let row = 0, at = 0; row < rows; ++row)
    for (let col = 0; col < cols; ++col, ++at) {
      const level = levelOf(shade(row, col));
      if (level >= 0) words[at] = ramp.words[level];
    }
  context.putImageData(image, 0, 0);
  return canvas;
}
