import { Empty } from "../components/States";

export function Workers() {
  return <Empty title="Workers">This page is being built.</Empty>;
}
