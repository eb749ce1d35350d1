/** An id where there is little room: its end, since ids that were made at one time begin alike. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}
