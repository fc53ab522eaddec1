// Texts of the pages of nodes and of the grid, loaded with them.

import { addTexts, currentLanguage } from "./i18n";
import en from "./locales/fleet.en.json";

export async function loadFleetTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("./locales/fleet.de.json")).default : language === "fr" ? (await import("./locales/fleet.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}
