package cni

// Codes of errors: those of the CNI specification (section "Error"), and Contiv's own
// from 100 on.
const (
	CodeInvalidEnv    = 4
	CodeIO            = 5
	CodeDecode        = 6
	CodeInvalidConfig = 7
	CodeTryLater      = 11
	CodeNotAvailable  = 50 // STATUS: cannot serve ADD
	CodeLimited       = 51 // STATUS: existing containers are affected too
	CodePodLookup     = 100
	CodeEndpoint      = 101
	CodeNetns         = 102
	CodeInterface     = 103
	CodeRoutes        = 104
	CodeExhausted     = 105
)
