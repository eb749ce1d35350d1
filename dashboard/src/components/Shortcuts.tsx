/** Global keyboard shortcuts. They are ignored while a text field has the focus. */
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { PAGES } from "../pages";
import { isTextInput } from "./keyboard";

const Help = lazy(() => import("./ShortcutHelp").then((module) => ({ default: module.ShortcutHelp })));

/** `timeStamp` counts from page load, so 0 would look like a recent key press right after loading. */
const NEVER = Number.NEGATIVE_INFINITY;

export function Shortcuts({ onScheme, onSearch, onNew }: { onScheme: () => void; onSearch: () => void; onNew: () => void }) {
  const [opened, setOpened] = useState(false);
  const navigate = useNavigate();
  const lastG = useRef(NEVER);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTextInput(event.target)) return;
      if (document.querySelector("[role=dialog]") && event.key !== "?") return;
      const afterG = event.timeStamp - lastG.current < 1_200;
      lastG.current = NEVER;
      if (afterG) {
        const page = PAGES.find((entry) => entry.key === event.key);
        if (page) {
          event.preventDefault();
          void navigate({ to: page.path });
        }
        return;
      }
      const action = { "?": () => setOpened((open) => !open), "/": onSearch, n: onNew, t: onScheme, g: () => (lastG.current = event.timeStamp) }[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [navigate, onScheme, onSearch, onNew]);
  return opened ? (
    <Suspense fallback={null}>
      <Help onClose={() => setOpened(false)} />
    </Suspense>
  ) : null;
}
