import { Empty } from "../components/States";

export function Dead() {
  return <Empty title="Dead">This page is being built.</Empty>;
}
