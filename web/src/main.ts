import { mount } from "svelte";

import App from "./App.svelte";
import "./app.css";
import "./units.css";
import "./unit.css";
import "./usage.css";
import "./frame.css";
import "./print.css";
import { chosenLanguage, currentLanguage, loadLanguage } from "./i18n";
import { chosenTheme, showTheme } from "./theme";

await loadLanguage(chosenLanguage());
document.documentElement.lang = currentLanguage();
showTheme(chosenTheme());
const target = document.getElementById("app")!;
target.textContent = "";
mount(App, { target });
