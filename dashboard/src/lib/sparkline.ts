/** SVG path of a sparkline. The highest value touches the top edge. */
export function sparkPath(values: readonly number[], width: number, height: number): string {
  if (values.length < 2) return "";
  const top = Math.max(...values, 0) || 1;
  const step = width / (values.length - 1);
  return values.map((value, index) => `${index ? "L" : "M"}${round(index * step)} ${round(height - (Math.max(0, value) / top) * height)}`).join("");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
