package intent

import (
	"reflect"
	"strings"
	"testing"
)

// TestCommittedTables: whoever reads what is committed meets no table in which the writer
// plans changes at the same time.
func TestCommittedTables(t *testing.T) {
	m := newModel(Config{Log: quiet()})
	compared := 0
	var compare func(path string, shared, own reflect.Value)
	compare = func(path string, shared, own reflect.Value) {
		switch {
		case shared.Kind() == reflect.Struct:
			for i := range shared.NumField() {
				compare(path+"."+shared.Type().Field(i).Name, shared.Field(i), own.Field(i))
			}
		case shared.Kind() != reflect.Pointer || strings.HasPrefix(shared.Type().Elem().Name(), "index["):
		default:
			compared++
			if shared.Pointer() == own.Pointer() {
				t.Errorf("tables%s is the writer's", path)
			}
		}
	}
	compare("", reflect.ValueOf(m.tables), reflect.ValueOf(m.committed().tables))
	if compared != len(m.all) {
		t.Errorf("%d tables compared, expected %d", compared, len(m.all))
	}
}
