package wire

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// DefaultPort is MySQL's.
const DefaultPort = 3306

// Address is a host's name or number, and a port.
type Address struct {
	Host string
	Port int
}

// String is host:port.
func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// ParseAddress reads host, host:port, [v6] or [v6]:port.
func ParseAddress(text string) (Address, error) {
	if net.ParseIP(strings.Trim(text, "[]")) != nil || text != "" && !strings.Contains(text, ":") {
		return Address{strings.Trim(text, "[]"), DefaultPort}, nil
	}
	host, service, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return Address{}, fmt.Errorf("the source's address %q is not of the form host:port", text)
	}
	n, err := strconv.ParseUint(service, 10, 16)
	if err != nil || n == 0 {
		return Address{}, fmt.Errorf("the source's address %q has no valid port", text)
	}
	return Address{host, int(n)}, nil
}

// ParseAddresses reads one address or several, separated by commas: the first one, and the others.
func ParseAddresses(text string) (first Address, others []Address, err error) {
	seen := map[Address]bool{}
	for i, one := range strings.Split(text, ",") {
		a, err := ParseAddress(strings.TrimSpace(one))
		if err != nil {
			return Address{}, nil, err
		}
		if seen[a] {
			return Address{}, nil, errors.New("the source's address " + a.String() + " is given twice")
		}
		seen[a] = true
		if i == 0 {
			first = a
		} else {
			others = append(others, a)
		}
	}
	return first, others, nil
}
