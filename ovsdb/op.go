package ovsdb

// Operation is one operation of a transaction (RFC 7047 section 5.2).
type Operation struct {
	op, table, uuidName string
	where               []Condition
	row                 Row
	mutations           []Mutation
}

// Condition is one comparison of a where clause.
type Condition struct {
	Column, Function string
	Value            any
}

// Equal selects rows whose column equals value.
func Equal(column string, value any) Condition { return Condition{column, "==", value} }

// ByUUID selects one row.
func ByUUID(id UUID) []Condition { return []Condition{Equal("_uuid", id)} }

// ByName selects the row of a name.
func ByName(name string) []Condition { return []Condition{Equal("name", name)} }

// Mutation changes part of a column.
type Mutation struct {
	Column, Mutator string
	Value           any
}

// InsertInto adds values to a set, or pairs to a map (existing keys keep their value).
func InsertInto(column string, value any) Mutation { return Mutation{column, "insert", value} }

// DeleteFrom removes values from a set, or pairs or keys (as a Set) from a map.
func DeleteFrom(column string, value any) Mutation { return Mutation{column, "delete", value} }

// Insert adds a row; uuidName, if not empty, names it for the rest of the transaction.
func Insert(table, uuidName string, row Row) Operation {
	return Operation{op: "insert", table: table, uuidName: uuidName, row: row}
}

// Update overwrites columns of the rows that match; nil matches every row.
func Update(table string, where []Condition, row Row) Operation {
	return Operation{op: "update", table: table, where: where, row: row}
}

// Mutate changes columns of the rows that match; nil matches every row.
func Mutate(table string, where []Condition, mutations ...Mutation) Operation {
	return Operation{op: "mutate", table: table, where: where, mutations: mutations}
}

// wire fills in the encoded members.
func (o Operation) wire() (map[string]any, error) {
	out := map[string]any{"op": o.op}
	if o.table != "" {
		out["table"] = o.table
	}
	if o.uuidName != "" {
		out["uuid-name"] = o.uuidName
	}
	if o.op != "insert" {
		where := []any{}
		for _, c := range o.where {
			v, err := encode(c.Value)
			if err != nil {
				return nil, err
			}
			where = append(where, []any{c.Column, c.Function, v})
		}
		out["where"] = where
	}
	if o.row != nil {
		row := map[string]any{}
		for k, v := range o.row {
			e, err := encode(v)
			if err != nil {
				return nil, err
			}
			row[k] = e
		}
		out["row"] = row
	}
	if o.mutations != nil {
		ms := []any{}
		for _, m := range o.mutations {
			v, err := encode(m.Value)
			if err != nil {
				return nil, err
			}
			ms = append(ms, []any{m.Column, m.Mutator, v})
		}
		out["mutations"] = ms
	}
	return out, nil
}
