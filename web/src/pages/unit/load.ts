// The page of a unit with its texts, which it needs from the start.

import { loadUnitTexts } from "../../text/unittexts";
import UnitPage from "./UnitPage.svelte";

export async function loadUnitPage(): Promise<{ default: typeof UnitPage }> {
  await loadUnitTexts();
  return { default: UnitPage };
}
