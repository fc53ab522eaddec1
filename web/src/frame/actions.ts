// What the palette does besides opening a place. Loaded with it.

import { copyText } from "../pages/copy";
import { chosenTheme, keepTheme, kThemes } from "../style/theme";
import { addTexts, currentLanguage, kLanguages, keepLanguage, t, type Language } from "../text/i18n";
import en from "../text/locales/palette.en.json";
import type { Option } from "./palette";

export async function loadPaletteTexts(): Promise<void> {
  const language = currentLanguage();
  try {
    addTexts(en, language === "de" ? (await import("../text/locales/palette.de.json")).default : language === "fr" ? (await import("../text/locales/palette.fr.json")).default : null);
  } catch {
    addTexts(en, null); // the file belongs to another version of the page
  }
}

/** The palette closes before the action, unless that says something. */
export interface Action extends Option {
  act: () => void;
  say?: (host: HTMLElement) => Promise<string>;
}

/** What can be done on the page that is open. `exporting`: its button that saves a file, if it has one. */
export function actions(exporting: HTMLElement | null): Action[] {
  const theme = chosenTheme();
  const action = (key: string, text: string, act: () => void): Action => ({ href: `action:${key}`, text, note: t("palette.action"), act });
  return [
    {
      ...action("copy", t("palette.copy"), () => {}),
      say: async (host) => ((await copyText(location.href, host)) ? t("palette.copied") : t("palette.notCopied", { link: location.href })),
    },
    ...(exporting ? [action("export", t("palette.export"), () => exporting.click())] : []),
    action("print", t("palette.print"), () => setTimeout(() => window.print())),
    ...kThemes
      .filter((one) => one !== theme)
      .map((one) =>
        action(one, t("palette.theme", { theme: t(`theme.${one}`) }), () => {
          keepTheme(one);
          const field = document.getElementById("theme"); // the person's menu shows the choice, too
          if (field instanceof HTMLSelectElement) field.value = one;
        }),
      ),
    ...(Object.keys(kLanguages) as Language[])
      .filter((one) => one !== currentLanguage())
      .map((one) =>
        action(one, t("palette.language", { language: kLanguages[one] }), () => {
          keepLanguage(one);
          location.reload();
        }),
      ),
  ];
}
