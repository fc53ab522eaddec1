// The page of a comparison with its texts, which it needs from the start.

import { loadUnitTexts } from "../../text/unittexts";
import ComparePage from "./ComparePage.svelte";

export async function loadComparePage(): Promise<{ default: typeof ComparePage }> {
  await loadUnitTexts();
  return { default: ComparePage };
}
