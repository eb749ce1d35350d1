/** The frame around every page: navigation, how live it is, who is signed in. */
import { ActionIcon, useMantineColorScheme, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { meQuery } from "../api/queries";
import * as session from "../api/session";
import { PAGES } from "../pages/list";
import { Icon, Mark } from "./Icon";
import { LiveMark } from "./LiveMark";
import { Shortcuts } from "./Shortcuts";

export function Shell() {
  const [menu, setMenu] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const main = useRef<HTMLElement>(null);
  const me = useQuery(meQuery);
  const navigate = useNavigate();
  const toggle = useScheme();
  const admin = me.data?.scopes.includes("admin") ?? false;
  const here = PAGES.find((page) => (page.path === "/" ? path === "/" : path.startsWith(page.path)));

  useEffect(() => {
    setMenu(false);
    document.title = here ? `${here.name} · holdfast` : "holdfast";
  }, [here, path]);

  const search = useCallback(() => {
    const field = () => document.querySelector<HTMLInputElement>("[data-search]");
    if (field()) field()?.focus();
    else void navigate({ to: "/jobs" }).then(() => setTimeout(() => field()?.focus(), 150));
  }, [navigate]);
  const anew = useCallback(() => void navigate({ to: "/jobs/new" }), [navigate]);

  return (
    <div className="shell">
      <button
        type="button"
        className="skip"
        onClick={() => {
          main.current?.focus();
        }}
      >
        Skip to the content
      </button>
      {menu && <button type="button" className="veil" aria-label="Close the menu" onClick={() => setMenu(false)} />}
      <aside className="side" data-open={menu} id="side" aria-label="Menu">
        <Link to="/" className="brand">
          <Mark />
          holdfast
        </Link>
        <nav className="nav" aria-label="Pages">
          {PAGES.filter((page) => admin || !page.admin).map((page) => (
            <Link key={page.path} to={page.path} aria-current={here === page ? "page" : undefined}>
              <Icon name={page.icon} />
              {page.name}
            </Link>
          ))}
        </nav>
        <div className="side-foot">
          {me.data && (
            <div className="wrap-any">
              <div className="soft">Signed in as</div>
              <strong>{me.data.name}</strong>
              <div className="soft">
                {admin ? "administrator" : `${me.data.tenant}: ${me.data.scopes.join(", ")}`}
              </div>
            </div>
          )}
          <div className="row tight">
            <a href="docs" className="grow">
              API
            </a>
            <span className="soft">{me.data?.version}</span>
          </div>
        </div>
      </aside>
      <div className="main">
        <header className="bar">
          <ActionIcon className="burger" variant="subtle" aria-label="Menu" aria-expanded={menu} aria-controls="side" onClick={() => setMenu(!menu)}>
            <Icon name="menu" size={20} />
          </ActionIcon>
          <span className="grow cut soft">{here && (path === here.path ? here.name : <Link to={here.path}>{here.name}</Link>)}</span>
          <LiveMark />
          <ActionIcon variant="subtle" color="gray" aria-label="Light or dark" title="Light or dark (t)" onClick={toggle}>
            <SchemeIcon />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label="Sign out" title="Sign out" onClick={() => session.signOut()}>
            <Icon name="out" size={18} />
          </ActionIcon>
        </header>
        <main className="content" ref={main} tabIndex={-1} id="content">
          {me.data && !me.data.scopes.some((scope) => scope === "cancel" || scope === "admin") && (
            <p className="small soft">This key may look but not touch: what it may not do is not offered.</p>
          )}
          <Outlet />
        </main>
      </div>
      <Shortcuts onScheme={toggle} onSearch={search} onNew={anew} />
    </div>
  );
}

function useScheme(): () => void {
  const { setColorScheme } = useMantineColorScheme();
  const now = useComputedColorScheme("light");
  return useCallback(() => setColorScheme(now === "dark" ? "light" : "dark"), [now, setColorScheme]);
}

function SchemeIcon() {
  const now = useComputedColorScheme("light");
  return <Icon name={now === "dark" ? "sun" : "moon"} size={18} />;
}
