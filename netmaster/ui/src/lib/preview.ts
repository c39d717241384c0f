// What a change would do to the connections of the last hour: see state/flowapi.
import { post } from "./api";
import type { FlowRecord, Decision, Gap, Missing } from "./flows";
import type { Content } from "./model";

export interface ObjectChange {
  verb: "put" | "delete";
  kind: string; // collection
  key: string;
  object?: Content;
}

export interface PreviewedFlow {
  record: FlowRecord;
  by: Decision;
}

export interface Preview {
  examined: number;
  wouldDeny: number;
  wouldAllow: number;
  denied: PreviewedFlow[] | null;
  allowed: PreviewedFlow[] | null;
  missing?: Missing[];
  gaps?: Gap[];
}

export function preview(changes: ObjectChange[]): Promise<Preview> {
  return post<Preview>("/api/v1/preview/", { changes });
}

// Kinds whose change can decide about connections.
export const decides = new Set(["rule", "policy", "endpointGroup", "network", "tenant"]);
