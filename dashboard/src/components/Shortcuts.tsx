/** Keys that work everywhere. Never while somebody types. */
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { PAGES } from "../pages/list";
import { isTyping } from "./typing";

const Sheet = lazy(() => import("./ShortcutSheet").then((module) => ({ default: module.ShortcutSheet })));

/** Times of events count from when the page was loaded: zero would be a moment ago for who is quick. */
const NEVER = Number.NEGATIVE_INFINITY;

export function Shortcuts({ onScheme, onSearch, onNew }: { onScheme: () => void; onSearch: () => void; onNew: () => void }) {
  const [opened, setOpened] = useState(false);
  const navigate = useNavigate();
  const going = useRef(NEVER);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (document.querySelector("[role=dialog]") && event.key !== "?") return;
      const went = event.timeStamp - going.current < 1_200;
      going.current = NEVER;
      if (went) {
        const page = PAGES.find((each) => each.key === event.key);
        if (page) {
          event.preventDefault();
          void navigate({ to: page.path });
        }
        return;
      }
      const act = { "?": () => setOpened((is) => !is), "/": onSearch, n: onNew, t: onScheme, g: () => (going.current = event.timeStamp) }[event.key];
      if (act) {
        event.preventDefault();
        act();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [navigate, onScheme, onSearch, onNew]);
  return opened ? (
    <Suspense fallback={null}>
      <Sheet onClose={() => setOpened(false)} />
    </Suspense>
  ) : null;
}
