/** List of keyboard shortcuts, opened with `?`. */
import { Modal } from "@mantine/core";
import { PAGES } from "../pages";

interface Shortcut {
  keys: string;
  action: string;
}

export const EVERYWHERE: readonly Shortcut[] = [
  { keys: "?", action: "Show this help" },
  { keys: "/", action: "Search jobs" },
  { keys: "n", action: "New job" },
  { keys: "t", action: "Switch between light and dark" },
];
export const IN_LISTS: readonly Shortcut[] = [
  { keys: "j", action: "Next row" },
  { keys: "k", action: "Previous row" },
  { keys: "Enter", action: "Open the selected row" },
];

export function ShortcutHelp({ onClose }: { onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keyboard shortcuts">
      <div className="columns even">
        <div className="stack">
          <Group title="Everywhere" items={EVERYWHERE} />
          <Group title="In lists" items={IN_LISTS} />
        </div>
        <Group title="Go to" items={PAGES.map((page) => ({ keys: `g ${page.key}`, action: page.name }))} />
      </div>
    </Modal>
  );
}

function Group({ title, items }: { title: string; items: readonly Shortcut[] }) {
  return (
    <div className="stack tight">
      <h3>{title}</h3>
      <dl className="facts">
        {items.map((item) => (
          <div key={item.keys} style={{ display: "contents" }}>
            <dt>
              {item.keys.split(" ").map((key) => (
                <span key={key}>
                  <kbd>{key}</kbd>{" "}
                </span>
              ))}
            </dt>
            <dd>{item.action}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
