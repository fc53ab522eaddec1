// The page of a node with its texts, which it needs from the start.

import { loadFleetTexts } from "../../text/fleettexts";
import NodePage from "./NodePage.svelte";

export async function loadNodePage(): Promise<{ default: typeof NodePage }> {
  await loadFleetTexts();
  return { default: NodePage };
}
