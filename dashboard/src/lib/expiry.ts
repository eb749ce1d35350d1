/** Keys: whether they are good, and until when. */

export type KeyState = "good" | "ends soon" | "expired" | "revoked";
const SOON = 7 * 86_400_000;

export function keyState(key: { expires_at: string | null; revoked_at: string | null }, now: number): KeyState {
  if (key.revoked_at) return "revoked";
  if (!key.expires_at) return "good";
  const left = Date.parse(key.expires_at) - now;
  return left <= 0 ? "expired" : left < SOON ? "ends soon" : "good";
}
