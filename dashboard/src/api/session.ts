/** API key of this tab. It is kept only in `sessionStorage`, so that it is gone when the tab is closed. */

const STORAGE_KEY = "holdfast.key";

let reason: string | undefined;

type Listener = () => void;
const listeners = new Set<Listener>();

/** The API key, or null if the user is not signed in. */
export function apiKey(): string | null {
  return sessionStorage.getItem(STORAGE_KEY);
}

/** Sign in: every request carries this API key from now on. */
export function signIn(token: string): void {
  reason = undefined;
  sessionStorage.setItem(STORAGE_KEY, token);
  notify();
}

/** Sign in with the key of a link. If the tab has another key, ask first: the link may come from someone else. */
export function signInByLink(token: string, confirm: (question: string) => boolean): void {
  const current = apiKey();
  if (current === token) return;
  if (current && !confirm("This link signs this tab in with another API key. Replace the key that you use now?")) return;
  signIn(token);
}

/** Sign out. `endedBecause` is shown to the user if they did not sign out themselves. */
export function signOut(endedBecause?: string): void {
  reason = endedBecause;
  sessionStorage.removeItem(STORAGE_KEY);
  notify();
}

/** End the session because the server rejected the API key. */
export function expire(): void {
  if (apiKey()) signOut("This API key was revoked or has expired. Sign in with another one.");
}

/** Reason why the last session ended, unless the user ended it. */
export function endReason(): string | undefined {
  return reason;
}

/** Call the listener after each sign-in and sign-out. Returns a function that unsubscribes it. */
export function subscribe(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(): void {
  for (const listener of listeners) listener();
}

/** Remove a ticket or an API key from the address, before anything else reads it, and return it. */
export function takeCredentials(location: Location, history: History): { ticket?: string; key?: string } {
  const match = /^#(ticket|key)=([^&/]+)$/.exec(location.hash);
  if (!match) return {};
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  try {
    return { [match[1] as string]: decodeURIComponent(match[2] as string) };
  } catch {
    return {};
  }
}
