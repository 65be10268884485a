package compat

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// ambiguousZone tells abbreviations, such as CST or CEST, from UTC and from names of zones: they do not say by which rule the
// offset changes.
func ambiguousZone(name string) bool {
	return name != "" && name != "UTC" && name != "GMT" && !strings.Contains(name, "/")
}

// offset prints one as MySQL writes it: +05:30.
func offset(d time.Duration) string {
	sign := '+'
	if d < 0 {
		sign, d = '-', -d
	}
	return fmt.Sprintf("%c%02d:%02d", sign, int(d.Hours()), int(d.Minutes())%60)
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // a socket
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
