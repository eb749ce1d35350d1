import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { Problem } from "../api/client";
import { ConfirmWithPreview } from "./ConfirmWithPreview";

type Run = (options: { dryRun: boolean; cursor: string | undefined }) => Promise<{ matched: number; changed: number; next_cursor: string | null }>;

function show(run: Run) {
  const done = vi.fn();
  render(
    <MantineProvider withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <ConfirmWithPreview opened onClose={() => undefined} title="Cancel all" verb="Cancel" danger previewKey={1} run={run} onDone={done} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return done;
}

it("counts over all pages first, and changes nothing until it is confirmed", async () => {
  const run = vi.fn<Run>(async ({ dryRun, cursor }) => ({ matched: cursor ? 2 : 1000, changed: dryRun ? 0 : cursor ? 2 : 1000, next_cursor: cursor ? null : "more" }));
  const done = show(run);
  await screen.findByText("1,002 jobs");
  expect(run.mock.calls.every(([options]) => options.dryRun)).toBe(true);
  fireEvent.click(screen.getByText("Cancel 1,002"));
  await screen.findByText(/changed\./);
  expect(run.mock.calls.filter(([options]) => !options.dryRun).map(([options]) => options.cursor)).toEqual([undefined, "more"]);
  expect(done).toHaveBeenCalledWith(1002);
});

it("disables the action if nothing matches", async () => {
  show(async () => ({ matched: 0, changed: 0, next_cursor: null }));
  await screen.findByText(/No matching job/);
  expect((screen.getByText("Cancel").closest("button") as HTMLButtonElement).disabled).toBe(true);
});

it("shows why the action failed", async () => {
  show(async ({ dryRun }) => {
    if (dryRun) return { matched: 3, changed: 0, next_cursor: null };
    throw new Problem(403, "forbidden", "this needs the scope 'cancel'");
  });
  fireEvent.click(await screen.findByText("Cancel 3"));
  await screen.findByText(/needs the scope/);
});
