import { expect, it } from "vitest";
import { keyState } from "./expiry";

const NOW = Date.parse("2030-01-31T12:00:00Z");
const key = (expires_at: string | null, revoked_at: string | null = null) => ({ expires_at, revoked_at });

it("says whether a key is good", () => {
  expect(keyState(key(null), NOW)).toBe("good");
  expect(keyState(key("2030-06-01T00:00:00Z"), NOW)).toBe("good");
  expect(keyState(key("2030-02-01T00:00:00Z"), NOW)).toBe("ends soon");
  expect(keyState(key("2030-01-31T12:00:00Z"), NOW)).toBe("expired");
  expect(keyState(key(null, "2030-01-01T00:00:00Z"), NOW)).toBe("revoked");
});
