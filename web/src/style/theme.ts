// Light or dark: as the system has it, or as chosen for this browser.

export const kThemes = ["system", "light", "dark"] as const;
export type Theme = (typeof kThemes)[number];

const kStorageKey = "ceems.theme";

export function chosenTheme(): Theme {
  try {
    return kThemes.find((theme) => theme === localStorage.getItem(kStorageKey)) ?? "system";
  } catch {
    return "system"; // the browser has no storage for this page
  }
}

export function showTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event(kThemeEvent)); // charts are drawn anew
}
export const kThemeEvent = "ceems-theme";

const painted = new Map<string, string>(); // by scheme and token: to ask takes the browser a pass over its styles

/** How a token is painted on `host` now: a canvas cannot use tokens. */
export function inks(host: HTMLElement): (token: string) => string {
  const scheme = [document.documentElement.dataset.theme, ...["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"].map((query) => matchMedia(query).matches)].join();
  const style = getComputedStyle(host);
  return (token) => {
    const known = painted.get(`${scheme} ${token}`);
    if (known !== undefined) return known;
    host.style.color = `var(${token})`;
    const found = style.color;
    host.style.color = "";
    if (!host.getAttribute("style")) host.removeAttribute("style");
    painted.set(`${scheme} ${token}`, found);
    return found;
  };
}

export function keepTheme(theme: Theme): void {
  try {
    if (theme === "system") localStorage.removeItem(kStorageKey);
    else localStorage.setItem(kStorageKey, theme);
  } catch {
    // It holds until the page is loaded again.
  }
  showTheme(theme);
}
