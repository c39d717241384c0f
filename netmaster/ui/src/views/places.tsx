// The views, in the order of the menu.
import type { Place } from "../parts/shell";
import { Objects } from "./objects";
import { Overview } from "./overview";

export const places: Place[] = [
  { name: "overview", title: "Overview", icon: "M2 2h5v6H2zM9 2h5v4H9zM9 8h5v6H9zM2 10h5v4H2z", view: () => <Overview /> },
  { name: "objects", title: "Objects", icon: "M8 1.5 14 5v6l-6 3.5L2 11V5zM2 5l6 3.5L14 5M8 8.5v6", view: () => <Objects /> },
];
