//go:build kubernetes

package kubernetes

// policyCases are policies, and who then reaches whom. In all three namespaces, pods a
// have the label tier with the value front, pods b with the value back, and pods c do
// not have it. @x/a4 and @x/a6 stand for the addresses of a pod.
var policyCases = []struct{ name, policies, expected string }{
	{"default deny ingress", policy("x", "p", "{podSelector: {}, policyTypes: [Ingress]}"), "deny * x/*"},
	{"default deny egress", policy("x", "p", "{podSelector: {}, policyTypes: [Egress]}"), "deny x/* *"},
	{
		"default deny",
		policy("x", "p", "{podSelector: {}, policyTypes: [Ingress, Egress]}"),
		`deny * x/*
		 deny x/* *`,
	},
	{
		"an empty rule allows everything",
		policy("x", "deny", "{podSelector: {}, policyTypes: [Ingress, Egress]}") + policy("x", "allow", "{podSelector: {matchLabels: {pod: a}}, ingress: [{}], egress: [{}], policyTypes: [Ingress, Egress]}"),
		`deny * x/*
		 deny x/* *
		 allow * x/a
		 allow x/a *
		 deny x/a x/*
		 deny x/* x/a`,
	},
	{
		"a list of rules for egress isolates in both directions where no types are given",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, egress: [{to: [{namespaceSelector: {matchLabels: {ns: 'y'}}}]}]}"),
		`deny * x/a
		 deny x/a *
		 allow x/a y/*`,
	},

	// Peers.
	{
		"pods of the policy's own namespace",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}]}]}"),
		`deny * x/a
		 allow x/b x/a`,
	},
	{
		"all pods of the policy's own namespace",
		policy("x", "p", "{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}"),
		`deny * x/*
		 allow x/* x/*`,
	},
	{
		"pods of other namespaces",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}]}]}"),
		`deny * x/a
		 allow y/* x/a`,
	},
	{
		"namespaces by name",
		policy("x", "p", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: z}}}]}]}"),
		`deny x/* *
		 allow x/* z/*`,
	},
	{
		"all namespaces",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {pod: c}}}]}]}"),
		`deny * x/a
		 allow */c x/a`,
	},
	{
		"selectors of one peer must both match",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}, podSelector: {matchLabels: {pod: b}}}]}]}"),
		`deny * x/a
		 allow y/b x/a`,
	},
	{
		"of several peers one must match",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}, {podSelector: {matchLabels: {pod: b}}}]}]}"),
		`deny * x/a
		 allow y/* x/a
		 allow x/b x/a`,
	},
	{
		"nobody matches",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: nowhere}}}]}]}"),
		"deny * x/a",
	},

	// Expressions.
	{
		"In",
		policy("x", "p", "{podSelector: {matchLabels: {pod: c}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchExpressions: [{key: tier, operator: In, values: [front, back]}]}}]}]}"),
		`deny * x/c
		 allow */a x/c
		 allow */b x/c`,
	},
	{
		"NotIn, also without the label",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [front]}]}}]}]}"),
		`deny * x/a
		 allow */b x/a
		 allow */c x/a`,
	},
	{
		"Exists",
		policy("x", "p", "{podSelector: {matchLabels: {pod: c}}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchExpressions: [{key: tier, operator: Exists}]}}]}]}"),
		`deny x/c *
		 allow x/c */a
		 allow x/c */b`,
	},
	{
		"DoesNotExist",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}}]}]}"),
		`deny * x/a
		 allow */c x/a`,
	},
	{
		"expressions for namespaces and for the pods that a policy is of",
		policy("x", "p", "{podSelector: {matchExpressions: [{key: tier, operator: Exists}, {key: pod, operator: NotIn, values: [b]}]}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: ns, operator: NotIn, values: [x, z]}, {key: ns, operator: Exists}]}}]}]}"),
		`deny * x/a
		 allow y/* x/a`,
	},

	// Blocks of addresses.
	{
		"blocks of both families",
		policy("x", "p", `{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{ipBlock: {cidr: 10.50.0.0/24}}, {ipBlock: {cidr: "2001:db8:50::/100"}}]}]}`),
		"",
	},
	{
		"a block of one family",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}"),
		"deny * x/a *v6",
	},
	{
		"a block of the other family",
		policy("x", "p", `{podSelector: {matchLabels: {pod: a}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: "::/0"}}], ports: [{port: 80}]}]}`),
		`deny x/a *
		 allow x/a * tcp80v6`,
	},
	{
		"single addresses",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: @y/a4}}, {ipBlock: {cidr: @z/b6}}]}]}"),
		`deny x/a *
		 allow x/a y/a *v4
		 allow x/a z/b *v6`,
	},
	{
		"exceptions",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{ipBlock: {cidr: 10.50.0.0/24, except: [@y/a4, @z/b4]}}]}]}"),
		`deny * x/a *v6
		 deny y/a x/a
		 deny z/b x/a`,
	},
	{
		"an exception is no denial: another policy may allow it",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [@y/a4, @y/b4]}}]}]}") +
			policy("x", "q", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{ipBlock: {cidr: @y/a4}}], ports: [{port: 80}]}]}"),
		`deny * x/a *v6
		 deny y/a x/a
		 deny y/b x/a
		 allow y/a x/a tcp80v4`,
	},
	{
		"an exception that is the whole block",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{ipBlock: {cidr: 10.50.0.0/24, except: [10.50.0.0/25, 10.50.0.128/25]}}]}]}"),
		"deny * x/a",
	},

	// Ports.
	{
		"a port is of TCP if nothing is said",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{ports: [{port: 80}]}]}"),
		`deny * x/a
		 allow * x/a tcp80`,
	},
	{
		"a protocol without port",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{ports: [{protocol: UDP}]}]}"),
		`deny * x/a
		 allow * x/a udp*`,
	},
	{
		"ports for egress",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, policyTypes: [Egress], egress: [{ports: [{port: 81, protocol: UDP}, {port: 80, protocol: TCP}, {port: 80, protocol: SCTP}]}]}"),
		`deny x/a *
		 allow x/a * tcp80 udp81`,
	},
	{
		"a rule's ports are for its own peers",
		policy("x", "p", `{podSelector: {}, ingress: [
  {from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}, {namespaceSelector: {matchLabels: {ns: z}}, podSelector: {matchLabels: {pod: a}}}], ports: [{port: 80}, {port: 81, protocol: UDP}]},
  {from: [{namespaceSelector: {matchLabels: {ns: z}}}], ports: [{port: 81}, {port: 80, protocol: UDP}]}]}`),
		`deny * x/*
		 allow y/* x/* tcp80 udp81
		 allow z/a x/* tcp80 udp81
		 allow z/* x/* tcp81 udp80`,
	},
	{
		"a range with its last port",
		policy("x", "p", "{podSelector: {}, ingress: [{ports: [{port: 80, endPort: 81}]}]}"),
		`deny * x/*
		 allow * x/* tcp*`,
	},
	{
		"a range that begins after a port",
		policy("x", "p", "{podSelector: {}, ingress: [{ports: [{port: 81, endPort: 65535}, {port: 1, endPort: 79}]}]}"),
		`deny * x/*
		 allow * x/* tcp81`,
	},
	{
		"a range that ends before a port",
		policy("x", "p", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}}], ports: [{port: 1, endPort: 80, protocol: UDP}]}]}"),
		`deny x/* *
		 allow x/* * udp80`,
	},
	{
		"a name is what the pod that is asked means by it",
		policy("x", "p", "{podSelector: {}, ingress: [{ports: [{port: web}]}]}"),
		`deny * x/*
		 allow * x/a tcp80
		 allow * x/b tcp80
		 allow * x/c tcp81`,
	},
	{
		"so for egress",
		policy("x", "p", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {ns: 'y'}}}], ports: [{port: web}]}]}"),
		`deny x/* *
		 allow x/* y/a tcp80
		 allow x/* y/b tcp80
		 allow x/* y/c tcp81`,
	},
	{
		"a name is of a protocol",
		policy("x", "p", "{podSelector: {}, ingress: [{ports: [{port: web, protocol: UDP}, {port: udp81, protocol: UDP}]}]}"),
		`deny * x/*
		 allow * x/* udp81`,
	},
	{
		"a name is that of each pod, whatever the rule says of peers",
		policy("x", "p", "{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: web}]}, {to: [{ipBlock: {cidr: 0.0.0.0/0}}], ports: [{port: web}]}]}"),
		"deny x/* *\nallow x/* */[ab] tcp80\nallow x/* */c tcp81",
	},

	// Several policies.
	{
		"policies add up",
		policy("x", "p", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}], ports: [{port: 80}]}]}") +
			policy("x", "q", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {matchLabels: {ns: z}}, podSelector: {matchLabels: {pod: b}}}]}]}") +
			policy("x", "r", "{podSelector: {matchLabels: {tier: back}}, ingress: [{from: [{podSelector: {matchLabels: {pod: c}}}], ports: [{protocol: UDP}]}]}"),
		`deny * x/*
		 allow y/* x/* tcp80
		 allow z/b x/a
		 allow x/c x/b udp*`,
	},
	{
		"both ends must agree",
		policy("x", "p", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {ns: 'y'}}}]}]}") +
			policy("y", "p", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {pod: a}}}]}]}") +
			policy("y", "q", "{podSelector: {matchLabels: {pod: b}}, ingress: [{ports: [{port: 80}]}]}"),
		`deny x/* *
		 allow x/* y/*
		 deny * y/a
		 allow */a y/a
		 deny * y/b
		 allow * y/b tcp80`,
	},
	{
		"a policy holds in its namespace only",
		policy("x", "p", "{podSelector: {matchLabels: {pod: a}}, policyTypes: [Ingress]}") + policy("y", "p", "{podSelector: {matchLabels: {pod: b}}, policyTypes: [Egress]}"),
		`deny * x/a
		 deny y/b *`,
	},
}
