import { expect, it, vi } from "vitest";
import * as session from "./session";

function opened(hash: string) {
  const replaceState = vi.fn();
  const found = session.takeFromAddress({ hash, pathname: "/jobs/", search: "" } as Location, { replaceState } as unknown as History);
  return { found, address: replaceState.mock.calls[0]?.[2] as string | undefined };
}

it("takes a ticket or a key out of the address", () => {
  expect(opened("#ticket=abc-_1")).toEqual({ found: { ticket: "abc-_1" }, address: "/jobs/#/" });
  expect(opened("#key=hf_1%2B")).toEqual({ found: { key: "hf_1+" }, address: "/jobs/#/" });
});

it.each(["", "#/", "#/jobs?key=1", "#keys=1"])("leaves %s alone", (hash) => {
  expect(opened(hash)).toEqual({ found: {}, address: undefined });
});

it("takes out also what cannot be read", () => {
  expect(opened("#key=%E0%A4%A")).toEqual({ found: {}, address: "/jobs/#/" });
});

it("says why a session ended, but not to whoever ended it", () => {
  session.signIn("hf_1");
  session.refused();
  expect(session.whyEnded()).toMatch(/good no more/);
  session.signIn("hf_2");
  expect(session.whyEnded()).toBeUndefined();
  session.signOut();
  session.refused();
  expect(session.whyEnded()).toBeUndefined();
});

it("keeps the key in the tab alone", () => {
  const told = vi.fn();
  const leave = session.onSession(told);
  session.signIn("hf_1");
  expect([session.key(), localStorage.length, document.cookie]).toEqual(["hf_1", 0, ""]);
  session.signOut();
  leave();
  session.signIn("hf_2");
  expect([told.mock.calls.length, session.key()]).toEqual([2, "hf_2"]);
});
