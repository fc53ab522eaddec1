// Texts of the pages of a unit and of comparisons, loaded with them.

import { addTexts, currentLanguage } from "./i18n";
import en from "./locales/unit.en.json";

export async function loadUnitTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("./locales/unit.de.json")).default : language === "fr" ? (await import("./locales/unit.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}
