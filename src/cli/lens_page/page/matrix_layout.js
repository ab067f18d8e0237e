// Where the parts of a matrix lie: names at the left and above, cells of one size, all in pixels of the page.

const kRowFont = "12px";
const kHeadSize = { flat: 36, ticks: 20, none: 4 };

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  ruler.font = `${font} ${inks.font}`;
  return ruler.measureText(text).width;
}

// Text cut to a width, with "…" where something is missing. Remembered: the same few texts come again and again.
const fitted = new Map();
function fit(text, width, font) {
  const key = `${font}|${Math.floor(width)}|${text}`;
  let cut = fitted.get(key);
  if (cut !== undefined) return cut;
  cut = text;
  if (widthOf(text, font) > width) {
    const characters = [...text];
    let low = 0;
    for (let high = characters.length; low < high;) {
      const middle = Math.ceil((low + high) / 2);
      if (widthOf(characters.slice(0, middle).join("") + "…", font) <= width) low = middle;
      else high = middle - 1;
    }
    cut = low > 0 ? characters.slice(0, low).join("") + "…" : "";
  }
  if (fitted.size > 20000) fitted.clear();
  fitted.set(key, cut);
  return cut;
}

// The room above columns whose names stand upright: that of the longest of the first few hundred, within bounds.
function uprightSize(spec) {
  let longest = 0;
  for (let col = 0; col < Math.min(spec.cols, 400); ++col) longest = Math.max(longest, widthOf(spec.columns.name(col), "11px"));
  return clamp(Math.ceil(longest) + 14, 24, 84);
}

// The room for the names of rows, or for their numbers where rows are too low for names.
const kNamedRow = 11;
function leftOf(spec, available, height) {
  if (spec.axis) return Math.ceil(Math.max(widthOf(spec.axis.most, kRowFont), widthOf(spec.axis.levelName, kRowFont))) + 14;
  if (!spec.rowNames) return spec.columns.kind === "none" ? 0 : 8;
  const names = height >= kNamedRow ? spec.rowNames : [rowNumber(spec, spec.rows - 1)];
  const longest = Math.max(...names.slice(0, 400).map((name) => widthOf(name, kRowFont)));
  return Math.min(Math.ceil(longest) + 14, available > 600 ? 150 : 96);
}
const rowNumber = (spec, row) => String(spec.rowNumber ? spec.rowNumber(row) : row);

// @param spec as Matrix has it. @param available pixels of width. @param whole whether all columns shall be seen at once
function layoutMatrix(spec, available, whole) {
  const [least, most] = spec.width;
  const smallest = whole ? spec.smallest ?? 2 : least;
  const side = (room) => clamp(Math.min(room, spec.square, window.innerHeight * 0.8 - 90) / spec.cols, smallest, most);
  const left = leftOf(spec, available, spec.square ? side(available) : spec.height);
  const room = available - left - 1;
  let width = spec.square ? side(room) : clamp(room / spec.cols, smallest, most);
  if (width > 3 && !spec.square) width = Math.floor(width * 2) / 2;
  const height = spec.square ? width : spec.height;
  const kind = spec.columns.kind;
  const head = kind === "tokens" ? (width >= 58 ? "flat" : width >= 13 ? "upright" : "ticks") : kind;
  const top = head === "upright" ? uprightSize(spec) : kHeadSize[head];
  return { left, top, width, height, head, innerWidth: Math.ceil(left + width * spec.cols) + 1,
    innerHeight: Math.ceil(top + height * spec.rows) + 1 };
}
