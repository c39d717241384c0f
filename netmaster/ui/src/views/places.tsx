// The views, in the order of the menu.
import type { Place } from "../parts/shell";
import { AuditLog } from "./audit";
import { Changes } from "./changes";
import { Flows } from "./flows";
import { Hosts } from "./hosts";
import { Objects } from "./objects";
import { Overview } from "./overview";
import { Policies } from "./policies";
import { Services } from "./services";
import { Topology } from "./topology";
import { Users } from "./users";

export const places: Place[] = [
  { name: "overview", title: "Overview", icon: "M2 2h5v6H2zM9 2h5v4H9zM9 8h5v6H9zM2 10h5v4H2z", view: () => <Overview /> },
  { name: "topology", title: "Topology", icon: "M3 3h3v3H3zM10 3h3v3h-3zM6.5 10h3v3h-3zM4.5 6v1.5h7V6M8 7.5V10", view: () => <Topology /> },
  { name: "flows", title: "Flows", icon: "M2 5h10M9 2l3 3-3 3M14 11H4M7 8l-3 3 3 3", view: () => <Flows /> },
  { name: "objects", title: "Objects", icon: "M8 1.5 14 5v6l-6 3.5L2 11V5zM2 5l6 3.5L14 5M8 8.5v6", view: () => <Objects /> },
  { name: "policies", title: "Policies", icon: "M2.5 2.5h11v11h-11zM6.2 2.5v11M9.8 2.5v11M2.5 6.2h11M2.5 9.8h11", view: () => <Policies /> },
  { name: "services", title: "Services", icon: "M8 2v4M3 14v-3h10v3M8 6v5M6 2h4", view: () => <Services /> },
  { name: "hosts", title: "Hosts", icon: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01", needs: "/api/v1/cluster/", view: () => <Hosts /> },
  { name: "changes", title: "Changes", icon: "M8 4v4l3 2M8 2a6 6 0 1 1-5.7 4M2 2v4h4", view: () => <Changes /> },
  { name: "audit", title: "Audit", icon: "M4 1.5h8v13H4zM6 5h4M6 8h4M6 11h2", needs: "/api/v1/security/audit", secured: true, view: () => <AuditLog /> },
  { name: "users", title: "Users", icon: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14c.5-3 2.5-4.5 5.5-4.5s5 1.5 5.5 4.5", secured: true, view: () => <Users /> },
];
