/** Connection state of the event stream. */
import { useLive } from "../api/live";
import { formatDuration } from "../lib/format";
import { useNow } from "./Time";

export function LiveIndicator() {
  const { state, since, reason, reconnectNow } = useLive();
  const now = useNow();
  if (state === "live") {
    return (
      <span className="live" role="status" title="Changes appear as they happen.">
        <span className="dot live-on" />
        Live
      </span>
    );
  }
  if (state === "stale") {
    return (
      <button type="button" className="live" onClick={reconnectNow} title={`The event stream was disconnected: ${reason ?? ""}. Click to reconnect now.`}>
        <span className="dot stale" />
        Disconnected for {formatDuration(Math.max(0, Math.round((now - since) / 1000)))}
        <span className="only-wide">: reconnecting …</span>
      </button>
    );
  }
  const label = { connecting: "Connecting …", paused: "Paused", off: "Live updates off" }[state];
  return (
    <span className="live" role="status">
      <span className="dot" />
      {label}
    </span>
  );
}
