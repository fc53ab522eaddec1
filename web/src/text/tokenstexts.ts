// Texts of the page of tokens, loaded with it.

import { addTexts, currentLanguage } from "./i18n";
import en from "./locales/tokens.en.json";

export async function loadTokensTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("./locales/tokens.de.json")).default : language === "fr" ? (await import("./locales/tokens.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}
