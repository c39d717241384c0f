// Package whatif answers what the rules of netmaster say of connections, without a switch and
// without a packet: of one that somebody asks about (Explain), and of those that hosts have
// recorded, as rules are and as they would be after a change (Preview). What decides is
// ofnet/judge, from the same records that agents make flows of. NetworkPolicies are the agents'.
package whatif
