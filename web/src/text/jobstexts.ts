// Texts of the list of units, loaded with it.

import { addTexts, currentLanguage } from "./i18n";
import en from "./locales/jobs.en.json";

export async function loadJobsTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("./locales/jobs.de.json")).default : language === "fr" ? (await import("./locales/jobs.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}
