package libopenflow

import "testing"

// goldenGroups are groups as ovs-ofctl 3.1 printed them.
var goldenGroups = []string{
	"group_id=12,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:11,actions=output:2",
	"group_id=14,type=select,bucket=actions=output:1,bucket=actions=output:3",
	"group_id=15,type=all",
	"group_id=11,type=select,bucket=weight:100,actions=output:1,bucket=weight:50,actions=set_field:0x5->reg0,output:2",
	"group_id=13,type=indirect,bucket=actions=output:1",
	"group_id=16,type=all,bucket=actions=drop,bucket=actions=ct(commit,table=5)",
}

func TestGroupText(t *testing.T) {
	for _, line := range goldenGroups {
		g, err := ParseGroup(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := g.String(); got != line {
			t.Errorf("text of a group:\n got %s\nwant %s", got, line)
		}
	}
}

func TestMeterText(t *testing.T) {
	m := Meter{ID: 5, Flags: MeterPktps | MeterBurst | MeterCollect, Bands: NewBands().Drop(10, 4).
		Add(Band{Type: BandDSCP, Rate: 5, Burst: 1, Precedence: 2})}
	want := "meter=5,pktps,burst,stats,bands=type=drop,rate=10,burst_size=4,type=dscp_remark,rate=5,burst_size=1,prec_level=2"
	if got := m.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
