package attachment

import (
	"errors"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/utils/errs"
)

// Step is a part of an attachment that can fail.
type Step int

// The steps, in order.
const (
	StepRequest   Step = iota + 1 // decode the request
	StepNetwork                   // determine the container's network
	StepEndpoint                  // create the endpoint, and have the switch forward for it
	StepNetns                     // enter the container's network namespace
	StepInterface                 // create and configure the interface
	StepRoutes                    // add its routes
	StepDetach                    // remove the port
	StepSwitch                    // the switch can be programmed
	StepAgent                     // the agent knows the networks
)

// codes are the error codes of failed steps, except for the reasons that Code knows.
var codes = map[Step]uint{
	StepRequest: cni.CodeInvalidEnv, StepNetwork: cni.CodePodLookup, StepEndpoint: cni.CodeEndpoint, StepNetns: cni.CodeNetns,
	StepInterface: cni.CodeInterface, StepRoutes: cni.CodeRoutes, StepDetach: cni.CodeInterface,
	StepSwitch: cni.CodeLimited, StepAgent: cni.CodeNotAvailable,
}

// Failure is the error of a step. All errors of an Attacher are Failures, or join some.
type Failure struct {
	Step Step
	Code uint // of the CNI specification, or Contiv's own
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// failed makes a Failure of err, nil of nil. Errors that a retry may fix have the same code
// in every step.
func failed(step Step, err error) error {
	if err == nil {
		return nil
	}
	code := codes[step]
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Timeout, errs.Conflict:
		code = cni.CodeTryLater
	case errs.Exhausted:
		code = cni.CodeExhausted
	}
	return &Failure{step, code, err}
}

// FailureOf returns err's first Failure, or one of StepEndpoint for another error.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{StepEndpoint, cni.CodeEndpoint, err}
}
