import { mount } from "svelte";

import App from "./frame/App.svelte";
import "./style/tokens.css";
import "./style/app.css";
import "./style/units.css";
import "./style/unit.css";
import "./style/usage.css";
import "./style/compare.css";
import "./style/heat.css";
import "./style/select.css";
import "./style/frame.css";
import "./style/print.css";
import { chosenLanguage, currentLanguage, loadLanguage } from "./text/i18n";
import { chosenTheme, showTheme } from "./style/theme";

await loadLanguage(chosenLanguage());
document.documentElement.lang = currentLanguage();
showTheme(chosenTheme());
if (/[?&]embed=1(&|$)/.test(location.search)) document.documentElement.classList.add("embed"); // without frame and navigation
const target = document.getElementById("app")!;
target.textContent = "";
mount(App, { target });
