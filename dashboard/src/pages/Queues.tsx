import { Empty } from "../components/States";

export function Queues() {
  return <Empty title="Queues">This page is being built.</Empty>;
}
