import { Empty } from "../components/States";

export function Tenants() {
  return <Empty title="Tenants">This page is being built.</Empty>;
}
