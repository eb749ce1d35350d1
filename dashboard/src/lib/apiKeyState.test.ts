import { expect, it } from "vitest";
import { apiKeyState } from "./apiKeyState";

const NOW = Date.parse("2030-01-31T12:00:00Z");
const key = (expires_at: string | null, revoked_at: string | null = null) => ({ expires_at, revoked_at });

it("derives the state of an API key from its expiry and revocation", () => {
  expect(apiKeyState(key(null), NOW)).toBe("active");
  expect(apiKeyState(key("2030-06-01T00:00:00Z"), NOW)).toBe("active");
  expect(apiKeyState(key("2030-02-01T00:00:00Z"), NOW)).toBe("expires soon");
  expect(apiKeyState(key("2030-01-31T12:00:00Z"), NOW)).toBe("expired");
  expect(apiKeyState(key(null, "2030-01-01T00:00:00Z"), NOW)).toBe("revoked");
});
