// Package netspec holds the settings of a network that travel unchanged from the REST
// object through the record in the store to the pipeline of the switch. The three types
// of a network (contivmodel.Network, state.Network and ofnet.Network) embed them, so a
// setting that is added here is copied nowhere by hand. What netmaster computes, as tags
// and addresses, is not here.
package netspec

// Settings are the settings of a network. They stay comparable.
type Settings struct {
	NwType string `json:"nwType,omitempty"` // data | infra
}
