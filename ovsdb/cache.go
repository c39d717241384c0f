package ovsdb

import (
	"encoding/json"
	"fmt"
)

type columnKind uint8

const (
	kindScalar columnKind = iota // exactly one or at most one value
	kindSet
	kindMap
)

// schema knows, per table and column, how a "modify" must be applied.
type schema map[string]map[string]columnKind

// parseSchema reads the part of a database schema (RFC 7047 section 3.2) the cache needs.
func parseSchema(raw json.RawMessage) (schema, error) {
	var doc struct {
		Tables map[string]struct {
			Columns map[string]struct {
				Type json.RawMessage `json:"type"`
			} `json:"columns"`
		} `json:"tables"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read the database schema: %w", err)
	}
	out := schema{}
	for table, t := range doc.Tables {
		out[table] = map[string]columnKind{}
		for column, c := range t.Columns {
			out[table][column] = kindOf(c.Type)
		}
	}
	return out, nil
}

func kindOf(raw json.RawMessage) columnKind {
	var t struct {
		Value json.RawMessage `json:"value"`
		Max   json.RawMessage `json:"max"`
	}
	if json.Unmarshal(raw, &t) != nil { // an atomic type, given by its name
		return kindScalar
	}
	if t.Value != nil {
		return kindMap
	}
	if t.Max == nil || string(t.Max) == "1" {
		return kindScalar
	}
	return kindSet
}

// Change is one row that came, changed or went. Rows must not be modified.
type Change struct {
	Table    string
	UUID     UUID
	Old, New Row // Old is nil for a new row, New for a deleted one
}

// View reads the cache; it is valid only inside the call that was given it.
type View struct{ tables map[string]map[UUID]Row }

// Row returns one row.
func (v View) Row(table string, id UUID) (Row, bool) {
	r, ok := v.tables[table][id]
	return r, ok
}

// Find returns the first row whose string column has the given value.
func (v View) Find(table, column, value string) (UUID, Row, bool) {
	for id, r := range v.tables[table] {
		if r.String(column) == value {
			return id, r, true
		}
	}
	return "", nil, false
}

// Each calls f for every row of a table, in no particular order.
func (v View) Each(table string, f func(UUID, Row)) {
	for id, r := range v.tables[table] {
		f(id, r)
	}
}

// apply merges a table-updates2 document into tables and lists what changed.
func apply(tables map[string]map[UUID]Row, sch schema, raw json.RawMessage) ([]Change, error) {
	var doc map[string]map[UUID]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read an update: %w", err)
	}
	var changes []Change
	for table, rows := range doc {
		if tables[table] == nil {
			tables[table] = map[UUID]Row{}
		}
		for id, kinds := range rows {
			old := tables[table][id]
			row, err := next(sch[table], old, kinds)
			if err != nil {
				return nil, fmt.Errorf("update of %s %s: %w", table, id, err)
			}
			if row == nil {
				delete(tables[table], id)
			} else {
				tables[table][id] = row
			}
			changes = append(changes, Change{Table: table, UUID: id, Old: old, New: row})
		}
	}
	return changes, nil
}

// next computes a row after one row-update2.
func next(columns map[string]columnKind, old Row, update map[string]json.RawMessage) (Row, error) {
	if _, gone := update["delete"]; gone {
		return nil, nil
	}
	for _, kind := range []string{"initial", "insert", "modify"} {
		raw, ok := update[kind]
		if !ok {
			continue
		}
		var cols map[string]json.RawMessage
		if err := json.Unmarshal(raw, &cols); err != nil {
			return nil, err
		}
		row := make(Row, len(old)+len(cols))
		for k, v := range old {
			row[k] = v
		}
		for name, rawValue := range cols {
			v, err := decode(rawValue)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", name, err)
			}
			if kind == "modify" {
				v = applyDiff(columns[name], old[name], v)
			}
			row[name] = v
		}
		return row, nil
	}
	return nil, fmt.Errorf("neither initial, insert, modify nor delete")
}
