import { Empty } from "../components/States";

export function Performance() {
  return <Empty title="Performance">This page is being built.</Empty>;
}
