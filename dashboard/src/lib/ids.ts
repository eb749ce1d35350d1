/** Shorten an id to its end, because ids created at the same time start with the same characters. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}
