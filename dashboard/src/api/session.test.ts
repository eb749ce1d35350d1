import { expect, it, vi } from "vitest";
import * as session from "./session";

function open(hash: string) {
  const replaceState = vi.fn();
  const credentials = session.takeCredentials({ hash, pathname: "/jobs/", search: "" } as Location, { replaceState } as unknown as History);
  return { credentials, address: replaceState.mock.calls[0]?.[2] as string | undefined };
}

it("removes a ticket or an API key from the address", () => {
  expect(open("#ticket=abc-_1")).toEqual({ credentials: { ticket: "abc-_1" }, address: "/jobs/#/" });
  expect(open("#key=hf_1%2B")).toEqual({ credentials: { key: "hf_1+" }, address: "/jobs/#/" });
});

it.each(["", "#/", "#/jobs?key=1", "#keys=1"])("does not change the address %s", (hash) => {
  expect(open(hash)).toEqual({ credentials: {}, address: undefined });
});

it("removes credentials even if they cannot be decoded", () => {
  expect(open("#key=%E0%A4%A")).toEqual({ credentials: {}, address: "/jobs/#/" });
});

it("asks before a link replaces the API key of the tab", () => {
  const confirm = vi.fn(() => false);
  session.signOut();
  session.signInByLink("hf_1", confirm);
  session.signInByLink("hf_1", confirm);
  expect([session.apiKey(), confirm.mock.calls.length]).toEqual(["hf_1", 0]);
  session.signInByLink("hf_2", confirm);
  expect([session.apiKey(), confirm.mock.calls.length]).toEqual(["hf_1", 1]);
  session.signInByLink("hf_2", () => true);
  expect(session.apiKey()).toBe("hf_2");
});

it("gives the reason why a session ended, unless the user ended it", () => {
  session.signIn("hf_1");
  session.expire();
  expect(session.endReason()).toMatch(/revoked or has expired/);
  session.signIn("hf_2");
  expect(session.endReason()).toBeUndefined();
  session.signOut();
  session.expire();
  expect(session.endReason()).toBeUndefined();
});

it("keeps the API key in the storage of the tab only", () => {
  const listener = vi.fn();
  const unsubscribe = session.subscribe(listener);
  session.signIn("hf_1");
  expect([session.apiKey(), localStorage.length, document.cookie]).toEqual(["hf_1", 0, ""]);
  session.signOut();
  unsubscribe();
  session.signIn("hf_2");
  expect([listener.mock.calls.length, session.apiKey()]).toEqual([2, "hf_2"]);
});
