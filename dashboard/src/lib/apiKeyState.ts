/** Validity of an API key. */

export type ApiKeyState = "active" | "expires soon" | "expired" | "revoked";
const SOON_MS = 7 * 86_400_000;

export function apiKeyState(key: { expires_at: string | null; revoked_at: string | null }, now: number): ApiKeyState {
  if (key.revoked_at) return "revoked";
  if (!key.expires_at) return "active";
  const remaining = Date.parse(key.expires_at) - now;
  return remaining <= 0 ? "expired" : remaining < SOON_MS ? "expires soon" : "active";
}
