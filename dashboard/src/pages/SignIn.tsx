/** Sign-in page. */
import { Button, PasswordInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { apiUrl, readProblem } from "../api/client";
import * as session from "../api/session";
import { Logo } from "../components/Icon";
import { ErrorBox } from "../components/Feedback";

export function SignIn({ notice }: { notice?: string | undefined }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const apiKey = key.trim();
    if (!apiKey) return;
    setBusy(true);
    setError(null);
    try {
      if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new Error("An API key contains only letters, digits and symbols, without spaces. Copy it again.");
      const response = await fetch(apiUrl("v1/me"), { headers: { authorization: `Bearer ${apiKey}` }, cache: "no-store", credentials: "omit" });
      if (response.status === 401) throw new Error("Invalid API key. Copy the complete key, and check that it was not revoked and has not expired.");
      if (!response.ok) throw await readProblem(response);
      session.signIn(apiKey);
    } catch (failure) {
      setError(failure instanceof TypeError ? new Error("The server does not respond. Is it running?") : failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={(event) => void submit(event)}>
        <div className="pad stack">
          <div className="row">
            <Logo size={30} />
            <h1>holdfast</h1>
          </div>
          {notice && (
            <div className="note warn" role="status">
              {notice}
            </div>
          )}
          <PasswordInput label="API key or token" description="Kept in this tab only, until you close it." value={key} onChange={(event) => setKey(event.currentTarget.value)} autoComplete="off" spellCheck={false} autoFocus />
          {error ? <ErrorBox error={error} title="Sign-in failed" /> : null}
          <Button type="submit" loading={busy} disabled={!key.trim()}>
            Sign in
          </Button>
          <p className="small soft">
            With <code>holdfast up</code>, open the link that it printed, or copy the key from <code>.holdfast/admin.key</code>. Otherwise
            ask an administrator for a key, from the page API keys or <code>holdfast keys create</code>. The scope <code>read</code> is enough to
            view everything of your tenant.
          </p>
        </div>
      </form>
    </main>
  );
}
