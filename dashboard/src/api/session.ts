/** The key of this tab. It is kept in the tab's own storage and nowhere else, and goes with the tab. */

const KEPT = "holdfast.key";

let reason: string | undefined;

type Listener = () => void;
const listeners = new Set<Listener>();

/** The key, if somebody is signed in. */
export function key(): string | null {
  return sessionStorage.getItem(KEPT);
}

/** Sign in: from now on every request carries this key. */
export function signIn(given: string): void {
  reason = undefined;
  sessionStorage.setItem(KEPT, given);
  tell();
}

/** Sign out; `why` if it was not the person's own wish. */
export function signOut(why?: string): void {
  reason = why;
  sessionStorage.removeItem(KEPT);
  tell();
}

/** The key was refused: the session is over. */
export function refused(): void {
  if (key()) signOut("This key is good no more: it was revoked, or has expired. Sign in with another.");
}

/** Why the last session ended, if there is something to say. */
export function whyEnded(): string | undefined {
  return reason;
}

/** Be told of both. */
export function onSession(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  for (const each of listeners) each();
}

/** What came in the address: a ticket or a key. It is taken out of the address before anything else happens. */
export function takeFromAddress(location: Location, history: History): { ticket?: string; key?: string } {
  const found = /^#(ticket|key)=([^&/]+)$/.exec(location.hash);
  if (!found) return {};
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  try {
    return { [found[1] as string]: decodeURIComponent(found[2] as string) };
  } catch {
    return {};
  }
}
