// What fields are called on the page, where it is not just their name.
const labels: Record<string, string> = {
  tenantName: "Tenant", networkName: "Network", groupName: "Group", policyName: "Policy", serviceName: "Service", ruleId: "Rule", profileName: "Profile",
  nwType: "Type", pktTag: "Tag", cfgdTag: "Tag name", extContractsGrps: "Contracts", ipPool: "Address pool", netProfile: "Profile",
  fromEndpointGroup: "From group", toEndpointGroup: "To group", fromNetwork: "From network", toNetwork: "To network", fromIpAddress: "From address",
  toIpAddress: "To address", ipAddress: "Address", ipv6Subnet: "IPv6 subnet", ipv6Gateway: "IPv6 gateway", encap: "Encapsulation",
};

export function label(name: string): string {
  if (labels[name]) return labels[name];
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[-_]/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
