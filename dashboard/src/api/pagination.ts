/** Reading of paged lists from the API. */

/** Items requested per page. */
export const PAGE_SIZE = 200;
/** Pages fetched for a list that is shown as a whole. */
const MAX_PAGES = 5;

interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** The items that were fetched, and whether the server has more. */
export interface PagedList<T> {
  items: T[];
  more: boolean;
}

/** Fetch a list page by page, up to `MAX_PAGES`. */
export async function fetchAllPages<T>(fetchPage: (cursor: string | undefined) => Promise<Page<T>>): Promise<PagedList<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let number = 0; number < MAX_PAGES; number += 1) {
    const page = await fetchPage(cursor);
    items.push(...page.items);
    if (!page.next_cursor) return { items, more: false };
    cursor = page.next_cursor;
  }
  return { items, more: true };
}
