// The page of nodes with its texts, which it needs from the start.

import { loadFleetTexts } from "../../text/fleettexts";
import NodesPage from "./NodesPage.svelte";

export async function loadNodesPage(): Promise<{ default: typeof NodesPage }> {
  await loadFleetTexts();
  return { default: NodesPage };
}
