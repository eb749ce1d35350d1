/** Frame around every page: navigation, connection state, current user. */
import { ActionIcon, useMantineColorScheme, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { meQuery } from "../api/queries";
import * as session from "../api/session";
import { isAdmin, isTenantAdmin } from "../lib/scopes";
import { PAGES } from "../pages";
import { Icon, Logo } from "./Icon";
import { LiveIndicator } from "./LiveIndicator";
import { Shortcuts } from "./Shortcuts";

export function Shell() {
  const [menu, setMenu] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const main = useRef<HTMLElement>(null);
  const me = useQuery(meQuery);
  const navigate = useNavigate();
  const toggleScheme = useToggleScheme();
  const admin = isAdmin(me.data);
  const tenantAdmin = isTenantAdmin(me.data);
  const currentPage = PAGES.find((page) => (page.path === "/" ? path === "/" : path.startsWith(page.path)));

  useEffect(() => {
    setMenu(false);
    document.title = currentPage ? `${currentPage.name} · holdfast` : "holdfast";
  }, [currentPage, path]);

  const focusSearch = useCallback(() => {
    const field = () => document.querySelector<HTMLInputElement>("[data-search]");
    if (field()) field()?.focus();
    else void navigate({ to: "/jobs" }).then(() => setTimeout(() => field()?.focus(), 150));
  }, [navigate]);
  const openNewJob = useCallback(() => void navigate({ to: "/jobs/new" }), [navigate]);

  return (
    <div className="shell">
      <button
        type="button"
        className="skip"
        onClick={() => {
          main.current?.focus();
        }}
      >
        Skip to content
      </button>
      {menu && <button type="button" className="backdrop" aria-label="Close menu" onClick={() => setMenu(false)} />}
      <aside className="side" data-open={menu} id="side" aria-label="Menu">
        <Link to="/" className="brand">
          <Logo />
          holdfast
        </Link>
        <nav className="nav" aria-label="Pages">
          {PAGES.filter((page) => tenantAdmin || !page.admin).map((page) => (
            <Link key={page.path} to={page.path} aria-current={currentPage === page ? "page" : undefined}>
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
                {admin ? "administrator" : tenantAdmin ? `administrator of ${me.data.tenant}` : `${me.data.tenant}: ${me.data.scopes.join(", ")}`}
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
          <span className="grow cut soft">{currentPage && (path === currentPage.path ? currentPage.name : <Link to={currentPage.path}>{currentPage.name}</Link>)}</span>
          <LiveIndicator />
          <ActionIcon variant="subtle" color="gray" aria-label="Switch between light and dark" title="Switch between light and dark (t)" onClick={toggleScheme}>
            <SchemeIcon />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label="Sign out" title="Sign out" onClick={() => session.signOut()}>
            <Icon name="out" size={18} />
          </ActionIcon>
        </header>
        <main className="content" ref={main} tabIndex={-1} id="content">
          {me.data && !me.data.scopes.some((scope) => scope === "cancel" || scope === "admin") && (
            <p className="small soft">This API key has limited permissions. Actions that it does not allow are hidden.</p>
          )}
          <Outlet />
        </main>
      </div>
      <Shortcuts onScheme={toggleScheme} onSearch={focusSearch} onNew={openNewJob} />
    </div>
  );
}

function useToggleScheme(): () => void {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  return useCallback(() => setColorScheme(scheme === "dark" ? "light" : "dark"), [scheme, setColorScheme]);
}

function SchemeIcon() {
  const scheme = useComputedColorScheme("light");
  return <Icon name={scheme === "dark" ? "sun" : "moon"} size={18} />;
}
