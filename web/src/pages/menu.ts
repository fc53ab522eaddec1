/** Makes a <details> a menu: Escape and a click elsewhere close it. */
export function menu(details: HTMLDetailsElement): { destroy(): void } {
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary")?.focus();
  };
  const elsewhere = (event: Event) => {
    if (details.open && !details.contains(event.target as Node)) details.open = false;
  };
  details.addEventListener("keydown", key);
  document.addEventListener("pointerdown", elsewhere);
  document.addEventListener("focusin", elsewhere);
  return {
    destroy() {
      document.removeEventListener("pointerdown", elsewhere);
      document.removeEventListener("focusin", elsewhere);
    },
  };
}
