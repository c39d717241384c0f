package cnm

// AddressSpaces is the answer to IpamDriver.GetDefaultAddressSpaces.
type AddressSpaces struct {
	LocalDefaultAddressSpace  string
	GlobalDefaultAddressSpace string
}

// IPAMCapabilities is the answer to IpamDriver.GetCapabilities.
type IPAMCapabilities struct {
	RequiresMACAddress    bool
	RequiresRequestReplay bool
}

// RequestPoolRequest asks for a subnet.
type RequestPoolRequest struct {
	AddressSpace string
	Pool         string // CIDR; empty: the driver chooses
	SubPool      string
	Options      map[string]string
	V6           bool
}

// RequestPoolResponse names the subnet. The Engine keeps PoolID with its network.
type RequestPoolResponse struct {
	PoolID string
	Pool   string // CIDR
	Data   map[string]string
}

// ReleasePoolRequest says that a subnet is not needed any more.
type ReleasePoolRequest struct{ PoolID string }

// OptionSerial is given by the manager of a swarm, which hands out addresses to tasks; the
// node that runs a task asks for the task's address without it.
const OptionSerial = "com.docker.network.ipam.serial"

// OptionAddressType says what an address is for; AddressTypeGateway: for the gateway.
const (
	OptionAddressType  = "RequestAddressType"
	AddressTypeGateway = "com.docker.network.gateway"
)

// RequestAddressRequest asks for an address of a pool.
type RequestAddressRequest struct {
	PoolID  string
	Address string // without length; empty: the driver chooses
	Options map[string]string
}

// RequestAddressResponse is the address.
type RequestAddressResponse struct {
	Address string // CIDR
	Data    map[string]string
}

// ReleaseAddressRequest gives an address back.
type ReleaseAddressRequest struct {
	PoolID  string
	Address string // without length
}
