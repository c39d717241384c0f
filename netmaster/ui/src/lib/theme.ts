// Light or dark: as the system says, until somebody chooses.
import { Cell } from "./cell";

export type Theme = "system" | "light" | "dark";

const key = "contiv-theme";
const order: Theme[] = ["system", "light", "dark"];

function stored(): Theme {
  const t = localStorage.getItem(key);
  return t === "light" || t === "dark" ? t : "system";
}

export const theme = new Cell<Theme>(stored());

function show(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}

theme.follow(() => {
  localStorage.setItem(key, theme.value);
  show();
});
show();

export function next(): void {
  theme.set(order[(order.indexOf(theme.value) + 1) % order.length] ?? "system");
}
