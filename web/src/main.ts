import { mount } from "svelte";

import App from "./App.svelte";
import "./app.css";
import "./units.css";
import "./unit.css";
import "./usage.css";
import "./print.css";

const target = document.getElementById("app")!;
target.textContent = "";
mount(App, { target });
