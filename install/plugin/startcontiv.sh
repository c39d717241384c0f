#!/bin/sh
# What the Docker Engine starts as the managed plugin of Contiv: netplugin, before it Open
# vSwitch unless the host runs it, and with CONTIV_ROLE=netmaster netmaster as well.
# Settings are the variables in config.json; empty ones count as not set.
PATH=/contiv/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

log=${CONTIV_LOG_DIR:-/var/log/contiv}
mkdir -p "$log"
exec >>"$log/plugin_bootup.log" 2>&1
say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*"; }

role=${CONTIV_ROLE:-netplugin}
case $role in
netmaster | netplugin) ;;
*)
    say "CONTIV_ROLE is \"$role\", expected netmaster or netplugin"
    exit 22
    ;;
esac
for daemon in NETMASTER NETPLUGIN; do
    eval "mode=\${CONTIV_${daemon}_MODE:-\${CONTIV_MODE:-}} consul=\${CONTIV_${daemon}_CONSUL_ENDPOINTS:-}"
    export "CONTIV_${daemon}_MODE=$mode"
    # etcd has a default here, which gives way.
    [ -z "$consul" ] || unset "CONTIV_${daemon}_ETCD_ENDPOINTS"
done
for name in $(env | sed -n 's/^\(CONTIV_[A-Z0-9_]*\)=$/\1/p'); do unset "$name"; done

running="" ending=""
# end: the Engine disables the plugin. Flows and ports stay, unless the switch is in here.
end() {
    ending=yes
    # shellcheck disable=SC2086
    [ -z "$running" ] || kill -TERM $running 2>/dev/null
}
trap end TERM INT

# keep NAME runs a daemon for as long as the plugin does, and again five seconds after it
# has ended. It gets its own end by the signal that ends the plugin.
keep() {
    child=""
    trap 'ending=yes; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM
    while [ -z "$ending" ]; do
        "$1" >>"$log/$1.log" 2>&1 &
        child=$!
        while kill -0 "$child" 2>/dev/null; do wait "$child"; done
        [ -n "$ending" ] || say "$1 has ended; it is started again in 5 seconds"
        [ -n "$ending" ] || { sleep 5 & child=$!; wait "$child"; }
    done
}

# openvswitch starts the switch.
openvswitch() {
    modprobe openvswitch 2>/dev/null || say "no kernel module openvswitch: it is built in, or the datapath is in user space"
    if [ ! -e /dev/net/tun ]; then # for the datapath in user space
        mkdir -p /dev/net
        mknod /dev/net/tun c 10 200
    fi
    if ovs-vsctl --timeout=1 --no-wait show >/dev/null 2>&1; then
        say "Open vSwitch runs on the host already"
        return
    fi
    [ -e /etc/openvswitch/conf.db ] || ovsdb-tool create /etc/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema
    ovsdb-server /etc/openvswitch/conf.db --remote=punix:/run/openvswitch/db.sock --pidfile=/run/openvswitch/ovsdb-server.pid \
        --log-file="$log/ovs-db.log" -vconsole:off &
    running="$running $!"
    ovs-vsctl --timeout=10 --retry --no-wait init
    ovs-vswitchd unix:/run/openvswitch/db.sock --pidfile=/run/openvswitch/ovs-vswitchd.pid \
        --log-file="$log/ovs-vswitchd.log" -vconsole:off &
    running="$running $!"
}

say "starting as $role"
# Settings of interfaces are made in /proc/sys, which a container may only read.
mount -o remount,rw /proc/sys || say "cannot write to /proc/sys"
# The Engine waits for the socket first of all: it is netplugin's.
keep netplugin &
daemons=$!
if [ "$role" = netmaster ]; then
    keep netmaster &
    daemons="$daemons $!"
fi
case ${CONTIV_START_OVS:-1} in
0 | false | no) ;;
*) openvswitch ;;
esac
running="$daemons $running"
[ -z "$ending" ] || end
# shellcheck disable=SC2086
while kill -0 $daemons 2>/dev/null; do wait $daemons; done
say "ended"
