import { Empty } from "../components/States";

export function Overview() {
  return <Empty title="Overview">This page is being built.</Empty>;
}
