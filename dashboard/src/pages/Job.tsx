import { Empty } from "../components/States";

export function Job() {
  return <Empty title="Job">This page is being built.</Empty>;
}
