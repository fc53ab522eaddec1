// The page of the grid with its texts, which it needs from the start.

import { loadFleetTexts } from "../../text/fleettexts";
import GridPage from "./GridPage.svelte";

export async function loadGridPage(): Promise<{ default: typeof GridPage }> {
  await loadFleetTexts();
  return { default: GridPage };
}
