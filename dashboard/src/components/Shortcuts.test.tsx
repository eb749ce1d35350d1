import { fireEvent, render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { Shortcuts } from "./Shortcuts";

const went = vi.hoisted(() => vi.fn());
vi.mock("@tanstack/react-router", () => ({ useNavigate: () => went }));

/** A press so long after the page was loaded. */
function press(key: string, after: number) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true });
  Object.defineProperty(event, "timeStamp", { value: after });
  fireEvent(document.body, event);
}

it("heeds a key also of who is quick, and goes only after a g", () => {
  const search = vi.fn();
  render(<Shortcuts onScheme={() => undefined} onSearch={search} onNew={() => undefined} />);
  press("/", 50);
  expect(search).toHaveBeenCalledOnce();
  press("q", 100);
  expect(went).not.toHaveBeenCalled();
  press("g", 150);
  press("q", 200);
  expect(went).toHaveBeenCalledWith({ to: "/queues" });
});
