/** The way in, by a key. */
import { Button, PasswordInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { address, problemOf } from "../api/client";
import * as session from "../api/session";
import { Mark } from "../components/Icon";
import { ErrorBox } from "../components/States";

export function SignIn({ notice }: { notice?: string | undefined }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const given = key.trim();
    if (!given) return;
    setBusy(true);
    setError(null);
    try {
      if (!/^[\x21-\x7e]+$/.test(given)) throw new Error("A key has only letters, digits and signs, without spaces: copy it once more.");
      const answer = await fetch(address("v1/me"), { headers: { authorization: `Bearer ${given}` }, cache: "no-store", credentials: "omit" });
      if (answer.status === 401) throw new Error("This is no good key. Copy the whole of it; a key that was revoked or has expired opens nothing.");
      if (!answer.ok) throw await problemOf(answer);
      session.signIn(given);
    } catch (failure) {
      setError(failure instanceof TypeError ? new Error("The server does not answer. Is it running?") : failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={(event) => void submit(event)}>
        <div className="pad stack">
          <div className="row">
            <Mark size={30} />
            <h1>holdfast</h1>
          </div>
          {notice && (
            <div className="note warn" role="status">
              {notice}
            </div>
          )}
          <PasswordInput label="API key or token" description="It stays in this tab and goes with it." value={key} onChange={(event) => setKey(event.currentTarget.value)} autoComplete="off" spellCheck={false} autoFocus />
          {error ? <ErrorBox error={error} title="Not signed in" /> : null}
          <Button type="submit" loading={busy} disabled={!key.trim()}>
            Sign in
          </Button>
          <p className="small soft">
            With <code>holdfast up</code>, open the link that it printed, or take the key from <code>.holdfast/admin.key</code>. Otherwise
            an administrator makes one: <code>POST /v1/keys</code>. The scope <code>read</code> is enough to look.
          </p>
        </div>
      </form>
    </main>
  );
}
