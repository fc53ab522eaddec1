/** Puts text on the clipboard; false if the browser refuses. Pages without TLS have no clipboard interface, so the old command is tried, too. */
export async function copyText(text: string, host: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No such interface, or no permission.
  }
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "hidden";
  field.tabIndex = -1;
  host.append(field); // near the button, so that nothing scrolls
  field.focus({ preventScroll: true });
  field.select();
  let copied = false;
  try {
    copied = document.execCommand("copy");
  } catch {
    // The command does not exist.
  }
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return copied;
}

/** Selects what an element shows, for Ctrl+C. */
export function selectText(element: Element): void {
  getSelection()?.selectAllChildren(element);
}
