/** How far what is on the page can be trusted, in one word and one dot. */
import { useLive } from "../api/live";
import { span } from "../lib/format";
import { useNow } from "./Time";

export function LiveMark() {
  const { state, since, why, hurry } = useLive();
  const now = useNow();
  if (state === "live") {
    return (
      <span className="live" role="status" title="Changes are shown as they happen.">
        <span className="dot live-on" />
        Live
      </span>
    );
  }
  if (state === "stale") {
    return (
      <button type="button" className="live" onClick={hurry} title={`The stream of changes ended: ${why ?? ""}. Press to try now.`}>
        <span className="dot stale" />
        Stale for {span(Math.max(0, Math.round((now - since) / 1000)))}
        <span className="only-wide">: reconnecting …</span>
      </button>
    );
  }
  const words = { connecting: "Connecting …", paused: "Paused", off: "Not live" }[state];
  return (
    <span className="live" role="status">
      <span className="dot" />
      {words}
    </span>
  );
}
