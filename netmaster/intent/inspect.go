package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// namesShown is how many blockers an error of a deletion names.
const namesShown = 5

// vteps are the hosts' tunnel addresses, by label. Agents write these, so they are read
// from the store when needed.
type vteps map[string]string

func (e *Engine) vteps(ctx context.Context) (vteps, error) {
	recs, err := e.hostRecords(ctx)
	if err != nil {
		return nil, err
	}
	hosts := make(vteps, len(recs))
	for label, rec := range recs {
		hosts[label] = rec.VtepIP
	}
	return hosts, nil
}

// virtualPort names the host's end of an endpoint's port, as the agent reports it; empty
// until it has.
func (e *Engine) virtualPort(ctx context.Context, endpoint string) (string, error) {
	kv, err := e.store.Get(ctx, state.OperEndpointRt+endpoint)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read what the agent reports of endpoint %s: %w", endpoint, err)
	}
	var oper state.OperEndpoint
	if err := json.Unmarshal(kv.Value, &oper); err != nil || oper.PortName == "" {
		return "", nil // treat an unreadable report as none
	}
	return "v" + oper.PortName, nil
}

// endpointOpers shows the endpoints an index has under value, sorted by id.
func (m *model) endpointOpers(ix *index[string, state.Endpoint], value string, hosts vteps) []contivmodel.EndpointOper {
	ids := sortedKeys(ix, value)
	opers := make([]contivmodel.EndpointOper, len(ids))
	for i, id := range ids {
		ep := m.endpoints.base[id].v
		opers[i] = contivmodel.NewEndpointOper(ep, hosts[ep.HomingHost])
	}
	return opers
}

// count counts what an iterator yields.
func count[K, V any](seq iter.Seq2[K, V]) int {
	n := 0
	for range seq {
		n++
	}
	return n
}

// names lists, for an error message, the first few elements in order; empty if there are
// none.
func names[K comparable, V any](seq iter.Seq2[K, V], name func(K, V) string) string {
	var all []string
	for k, v := range maps.Collect(seq) {
		all = append(all, name(k, v))
	}
	slices.Sort(all)
	if extra := len(all) - namesShown; extra > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:namesShown], ", "), extra)
	}
	return strings.Join(all, ", ")
}

// endpointName identifies an endpoint for users: its id and its host.
func endpointName(id string, ep *state.Endpoint) string {
	if ep.HomingHost == "" {
		return id
	}
	return id + " on host " + ep.HomingHost
}

// keyOf names an object by its key.
func keyOf[V any](key string, _ *V) string { return key }

// needTenant fails if a tenant does not exist.
func needTenant(x *tx, name string) error {
	if _, ok := x.tenants.get(name); !ok {
		return errs.New(errs.NotFound, "Tenant not found: %s", name)
	}
	return nil
}
