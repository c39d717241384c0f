package commands

import (
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

// option is an option of the command line that sets a field of an object. The type of
// its value, the values that a shell offers, and the names that it offers follow from the
// description of the field.
type option struct {
	field   string // of the object, "ipv6Subnet"
	name    string // of the option, "subnetv6"
	alias   string // shorter name, or ""
	usage   string
	initial string // value without the option; text fields only
}

// textOption, numberOption, listOption and switchOption are options that know their field.
type (
	textOption struct {
		*cli.StringFlag
		about contivmodel.Field
	}
	numberOption struct {
		*cli.IntFlag
		about contivmodel.Field
	}
	listOption struct {
		*cli.StringSliceFlag
		about contivmodel.Field
	}
	switchOption struct {
		*cli.BoolFlag
		about contivmodel.Field
	}
)

// described is an option that knows its field.
type described interface{ fieldOf() contivmodel.Field }

func (o *textOption) fieldOf() contivmodel.Field   { return o.about }
func (o *numberOption) fieldOf() contivmodel.Field { return o.about }
func (o *listOption) fieldOf() contivmodel.Field   { return o.about }
func (o *switchOption) fieldOf() contivmodel.Field { return o.about }

// fieldFlags makes the options that set fields of a kind's objects.
func fieldFlags(kind contivmodel.AnyKind, all []option) []cli.Flag {
	about := kind.Description()
	flags := make([]cli.Flag, len(all))
	for i, o := range all {
		var aliases []string
		if o.alias != "" {
			aliases = []string{o.alias}
		}
		f, _ := about.Field(o.field)
		switch f.Type {
		case contivmodel.NumberField:
			preset, _ := f.Default.(int)
			flags[i] = &numberOption{&cli.IntFlag{Name: o.name, Aliases: aliases, Usage: o.usage, Value: preset}, f}
		case contivmodel.ListField:
			flags[i] = &listOption{&cli.StringSliceFlag{Name: o.name, Aliases: aliases, Usage: o.usage}, f}
		case contivmodel.SwitchField:
			flags[i] = &switchOption{&cli.BoolFlag{Name: o.name, Aliases: aliases, Usage: o.usage}, f}
		default:
			flags[i] = &textOption{&cli.StringFlag{Name: o.name, Aliases: aliases, Usage: o.usage, Value: o.initial}, f}
		}
	}
	return flags
}

// tenantOption is the option that says which tenant an object belongs to.
func tenantOption() option {
	return option{field: "tenantName", name: "tenant", alias: "t", usage: "name of the tenant", initial: contivmodel.DefaultTenant}
}

// fill sets fields of an object to the values of those options that use accepts; nil
// accepts all.
func fill(cmd *cli.Command, kind contivmodel.AnyKind, obj any, all []option, use func(name string) bool) {
	for _, m := range kind.Members(obj) {
		for _, o := range all {
			if o.field != m.Name || use != nil && !use(o.name) {
				continue
			}
			switch m.Type {
			case contivmodel.NumberField:
				m.Set(cmd.Int(o.name))
			case contivmodel.ListField:
				m.Set(cmd.StringSlice(o.name))
			case contivmodel.SwitchField:
				m.Set(cmd.Bool(o.name))
			default:
				m.Set(cmd.String(o.name))
			}
		}
	}
}
