// The page of tokens with its texts, which it needs from the start.

import { loadTokensTexts } from "../../text/tokenstexts";
import TokensPage from "./TokensPage.svelte";

export async function loadTokensPage(): Promise<{ default: typeof TokensPage }> {
  await loadTokensTexts();
  return { default: TokensPage };
}
