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
        <FormModal title="A form" verb="Save" onClose={close} send={send} fields={["name"]}>
          {(errorOf) => <TextInput label="Name" error={errorOf("name")} />}
        </FormModal>
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole("button", { name: "Save" }));
  return close;
}

it("closes on success", async () => {
  const close = show(() => Promise.resolve());
  await waitFor(() => expect(close).toHaveBeenCalledOnce());
});

it("shows an error next to its field only", async () => {
  const close = show(() => Promise.reject(new Problem(422, "invalid", "no such name", "/name")));
  await screen.findByText("no such name");
  expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).toBe("true");
  expect(screen.queryByRole("alert")).toBeNull();
  expect(close).not.toHaveBeenCalled();
});

it("shows an error without a field below the form", async () => {
  show(() => Promise.reject(new Problem(503, "unavailable", "the database is unavailable")));
  expect((await screen.findByRole("alert")).textContent).toContain("the database is unavailable");
});
