// The user of the page. Normally a proxy (Grafana, the load balancer) names the user to the server. Without one, the server
// accepts the name that a client sends. The page then asks for it once and keeps it in this browser.

import type { Identity, Role, View } from "./api";
import { t } from "../text/i18n";

const kStorageKey = "ceems.user";

/** Storage that may be disabled or full. Without it the page works, but asks for the name again. */
export interface NameStore {
  read(): string | null;
  write(name: string | null): void;
}

export const browserStore: NameStore = {
  read() {
    try {
      return localStorage.getItem(kStorageKey);
    } catch {
      return null;
    }
  },
  write(name) {
    try {
      if (name === null) localStorage.removeItem(kStorageKey);
      else localStorage.setItem(kStorageKey, name);
    } catch {
      // The storage is disabled or full, so the name is kept only while the page is open.
    }
  },
};

/** Header values cannot contain control characters. The API compares names exactly, so only the ends are trimmed. */
export function cleanName(text: string): string | null {
  const name = text.trim();
  return name && name.length <= 256 && !/[\x00-\x1f\x7f]|[^\x00-\xff]/.test(name) ? name : null;
}

/** The name in "?user=NAME", and the address without it, so that bookmarks and shared links do not contain the name. */
export function nameInAddress(href: string): { name: string | null; rest: string } {
  const url = new URL(href);
  const name = cleanName(url.searchParams.get("user") ?? "");
  url.searchParams.delete("user");
  return { name, rest: url.pathname + url.search + url.hash };
}

/** Older servers report only whether the user is an administrator. */
export function roleOf(identity: Identity): Role {
  return identity.role ?? (identity.admin ? "admin" : "user");
}

/** The name of the role; empty for ordinary users. */
export function roleText(identity: Identity): string {
  const role = roleOf(identity);
  return role === "admin" || role === "support" || role === "project_lead" ? t(`role.${role}`) : "";
}

/** Who sees the pages of nodes and of the whole site. */
export function maySeeSite(identity: Identity): boolean {
  const role = roleOf(identity);
  return role === "admin" || role === "support";
}

/** The views that the page offers to this user, starting with the default. */
export function viewsOf(identity: Identity): { view: View; text: string }[] {
  const role = roleOf(identity);
  const views: { view: View; text: string }[] = [];
  if (role === "admin" || role === "support") views.push({ view: "all", text: t("view.all") });
  // Who leads projects comes for these.
  const led = identity.led?.length ? [{ view: "led" as const, text: t("view.led") }] : [];
  if (role === "project_lead") views.push(...led);
  views.push({ view: "own", text: t("view.own") });
  if (role !== "project_lead") views.push(...led);
  return views;
}

/** The view in which a single unit is searched: the widest one. */
export function widestView(identity: Identity): View {
  return viewsOf(identity)[0]?.view === "all" ? "all" : "mine";
}

/** The address of the login at the provider. It returns to this page; only paths of this server are allowed. */
export function providerAddress(root: string, location: { pathname: string; hash: string }): string {
  return `${root}login/oidc?${new URLSearchParams({ next: location.pathname + location.hash })}`;
}
