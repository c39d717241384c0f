package pki

import (
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/contiv/netplugin/utils/errs"
)

// A serial number is the moment of issue, in milliseconds since 1970 (48 bits), before 79
// random bits. So one moment is enough to revoke all earlier certificates of an owner.
const (
	serialRandomBits = 79
	serialBits       = 127
)

func newSerial(now time.Time) (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialRandomBits))
	if err != nil {
		return nil, errs.New(errs.Internal, "make a serial number: %w", err)
	}
	return n.Or(n, new(big.Int).Lsh(big.NewInt(now.UnixMilli()), serialRandomBits)), nil
}

// IssuedAt returns when a certificate of a cluster's authority was made, to the millisecond.
// For one of another authority it is the begin of its time.
func IssuedAt(cert *x509.Certificate) time.Time {
	if n := cert.SerialNumber; n != nil && n.Sign() > 0 && n.BitLen() <= serialBits {
		at := time.UnixMilli(new(big.Int).Rsh(n, serialRandomBits).Int64())
		if !at.Before(cert.NotBefore) && at.Before(cert.NotAfter) {
			return at
		}
	}
	return cert.NotBefore
}

// RenewAt returns when a certificate is to be renewed: after two thirds of its time.
func RenewAt(cert *x509.Certificate) time.Time {
	from := IssuedAt(cert)
	return from.Add(cert.NotAfter.Sub(from) * 2 / 3)
}
