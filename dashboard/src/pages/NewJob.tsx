import { Empty } from "../components/States";

export function NewJob() {
  return <Empty title="NewJob">This page is being built.</Empty>;
}
