import { Empty } from "../components/States";

export function Jobs() {
  return <Empty title="Jobs">This page is being built.</Empty>;
}
