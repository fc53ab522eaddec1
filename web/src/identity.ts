// Who asks. Normally a proxy (Grafana, the load balancer) names the user to the server. Where none does, the server
// believes the name that a client sends; the page then asks for it once and keeps it in this browser.

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
