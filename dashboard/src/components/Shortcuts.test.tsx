import { fireEvent, render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { Shortcuts } from "./Shortcuts";

const navigate = vi.hoisted(() => vi.fn());
vi.mock("@tanstack/react-router", () => ({ useNavigate: () => navigate }));

/** Press a key `after` milliseconds after page load. */
function press(key: string, after: number) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true });
  Object.defineProperty(event, "timeStamp", { value: after });
  fireEvent(document.body, event);
}

it("handles keys right after page load, and navigates only after g", () => {
  const search = vi.fn();
  render(<Shortcuts onScheme={() => undefined} onSearch={search} onNew={() => undefined} />);
  press("/", 50);
  expect(search).toHaveBeenCalledOnce();
  press("q", 100);
  expect(navigate).not.toHaveBeenCalled();
  press("g", 150);
  press("q", 200);
  expect(navigate).toHaveBeenCalledWith({ to: "/queues" });
});
