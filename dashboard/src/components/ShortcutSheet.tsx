/** The sheet behind `?`. */
import { Modal } from "@mantine/core";
import { PAGES } from "../pages/list";

interface Shortcut {
  keys: string;
  what: string;
}

export const EVERYWHERE: readonly Shortcut[] = [
  { keys: "?", what: "This sheet" },
  { keys: "/", what: "Search jobs" },
  { keys: "n", what: "New job" },
  { keys: "t", what: "Light or dark" },
];
export const IN_LISTS: readonly Shortcut[] = [
  { keys: "j", what: "Next row" },
  { keys: "k", what: "Previous row" },
  { keys: "Enter", what: "Open it" },
];

export function ShortcutSheet({ onClose }: { onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keyboard">
      <div className="columns even">
        <div className="stack">
          <Group title="Everywhere" items={EVERYWHERE} />
          <Group title="In lists" items={IN_LISTS} />
        </div>
        <Group title="Go to" items={PAGES.map((page) => ({ keys: `g ${page.key}`, what: page.name }))} />
      </div>
    </Modal>
  );
}

function Group({ title, items }: { title: string; items: readonly Shortcut[] }) {
  return (
    <div className="stack tight">
      <h3>{title}</h3>
      <dl className="facts">
        {items.map((each) => (
          <div key={each.keys} style={{ display: "contents" }}>
            <dt>
              {each.keys.split(" ").map((key) => (
                <span key={key}>
                  <kbd>{key}</kbd>{" "}
                </span>
              ))}
            </dt>
            <dd>{each.what}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
