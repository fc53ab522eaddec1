// Who asks. Normally a proxy (Grafana, the load balancer) names the user to the server. Where none does, the server
// believes the name that a client sends; the page then asks for it once and keeps it in this browser.

import type { Identity, Role, View } from "./api";

const kStorageKey = "ceems.user";

/** Storage that may be forbidden or full: the page works without, it only asks again. */
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
      // Private mode or full: the name lives as long as the page.
    }
  },
};

/** A header value may hold no control characters; the API compares names exactly, so only the ends are trimmed. */
export function cleanName(text: string): string | null {
  const name = text.trim();
  // eslint-disable-next-line no-control-regex
  return name && name.length <= 256 && !/[\x00-\x1f\x7f]|[^\x00-\xff]/.test(name) ? name : null;
}

/** The name in "?user=NAME", and the address without it so that a bookmark or a shared link does not carry it. */
export function nameInAddress(href: string): { name: string | null; rest: string } {
  const url = new URL(href);
  const name = cleanName(url.searchParams.get("user") ?? "");
  url.searchParams.delete("user");
  return { name, rest: url.pathname + url.search + url.hash };
}

/** Older servers say only whether one is an administrator. */
export function roleOf(identity: Identity): Role {
  return identity.role ?? (identity.admin ? "admin" : "user");
}

/** The role in words, where it is more than the usual. */
export function roleText(identity: Identity): string {
  const words: Partial<Record<Role, string>> = { admin: "administrator", support: "support", project_lead: "project lead" };
  return words[roleOf(identity)] ?? "";
}

/** Whose units the page can offer to this person, the first one to begin with. */
export function viewsOf(identity: Identity): { view: View; text: string }[] {
  const role = roleOf(identity);
  const views: { view: View; text: string }[] = [];
  if (role === "admin" || role === "support") views.push({ view: "all", text: "everyone’s" });
  views.push({ view: "own", text: "mine" });
  if (identity.led?.length) views.push({ view: "led", text: "projects I lead" });
  return views;
}

/** The view in which a single unit is looked for: the widest. */
export function widestView(identity: Identity): View {
  return viewsOf(identity)[0]?.view === "all" ? "all" : "mine";
}

/** The address of a login at the provider that leads back to this page. Paths of this server only. */
export function providerAddress(root: string, location: { pathname: string; hash: string }): string {
  return `${root}login/oidc?${new URLSearchParams({ next: location.pathname + location.hash })}`;
}
