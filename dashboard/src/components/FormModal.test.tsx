import { MantineProvider, TextInput } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { Problem } from "../api/client";
import { FormModal } from "./FormModal";

function show(send: () => Promise<unknown>) {
  const close = vi.fn();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <FormModal title="A form" verb="Set" onClose={close} send={send} fields={["name"]}>
          {(problemOf) => <TextInput label="Name" error={problemOf("name")} />}
        </FormModal>
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole("button", { name: "Set" }));
  return close;
}

it("closes when it is done", async () => {
  const close = show(() => Promise.resolve());
  await waitFor(() => expect(close).toHaveBeenCalledOnce());
});

it("says what is wrong next to the field, and only there", async () => {
  const close = show(() => Promise.reject(new Problem(422, "invalid", "no such name", "/name")));
  await screen.findByText("no such name");
  expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).toBe("true");
  expect(screen.queryByRole("alert")).toBeNull();
  expect(close).not.toHaveBeenCalled();
});

it("says what concerns no field below them all", async () => {
  show(() => Promise.reject(new Problem(503, "unavailable", "the database is away")));
  expect((await screen.findByRole("alert")).textContent).toContain("the database is away");
});
