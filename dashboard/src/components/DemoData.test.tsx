import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { call } from "../api/client";
import { DemoData } from "./DemoData";

vi.mock("../api/client", () => ({ call: vi.fn(), Problem: class extends Error {} }));

beforeEach(() => {
  vi.mocked(call).mockReset();
  render(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <DemoData />
      </QueryClientProvider>
    </MantineProvider>,
  );
});

test("demo jobs are submitted and deleted, and the number is shown", async () => {
  vi.mocked(call).mockResolvedValueOnce({ jobs: 200, tenants: [] }).mockResolvedValueOnce({ jobs: 1 });
  fireEvent.click(screen.getByRole("button", { name: "Demo data" }));
  expect(await screen.findByText("200 jobs submitted.")).toBeTruthy();
  expect(call).toHaveBeenCalledWith("POST", "/v1/demo/seed", {});
  fireEvent.click(screen.getByRole("button", { name: "Clear demo data" }));
  expect(await screen.findByText("1 job deleted.")).toBeTruthy();
  expect(call).toHaveBeenLastCalledWith("POST", "/v1/demo/clear", {});
});

test("a failure is shown", async () => {
  vi.mocked(call).mockRejectedValueOnce(new Error("the node is away"));
  fireEvent.click(screen.getByRole("button", { name: "Demo data" }));
  expect(await screen.findByText("the node is away")).toBeTruthy();
});
