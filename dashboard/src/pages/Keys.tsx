import { Empty } from "../components/States";

export function Keys() {
  return <Empty title="Keys">This page is being built.</Empty>;
}
