package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/wire"
)

// sourcePasswordVariable holds the source's password where it does not stand in --from.
const sourcePasswordVariable = "TIDEMARK_SOURCE_PASSWORD"

const fromForm = "mysql://user:password@host:port[,host:port ...]/database[?setting=value&...]"

// source is what --from says.
type source struct {
	address, database, user, password string
	settings                          []string // name=value
}

// parseSource reads --from. Its errors do not show what was given: a password stands in it.
func parseSource(from string) (source, error) {
	var s source
	hosts, rest, err := splitHosts(from)
	if err != nil {
		return s, err
	}
	u, err := url.Parse(rest)
	if err != nil || u.User == nil || len(u.Path) < 2 || strings.Contains(u.Path[1:], "/") || u.Fragment != "" {
		return s, errFrom
	}
	s.address, s.database, s.user = hosts, u.Path[1:], u.User.Username()
	if _, _, err := wire.ParseAddresses(s.address); err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	if s.settings, err = parameters(u.RawQuery); err != nil {
		return s, err
	}
	password, given := u.User.Password()
	if !given {
		password = os.Getenv(sourcePasswordVariable)
	}
	s.password = password
	return s, nil
}

var errFrom = errors.New("--from is not of the form " + fromForm + " (special characters as %xx)")

// splitHosts takes the hosts out, of which a URL may have one only.
func splitHosts(from string) (hosts, rest string, err error) {
	const scheme = "mysql://"
	tail, ok := strings.CutPrefix(from, scheme)
	authority, path, hasPath := strings.Cut(tail, "/")
	at := strings.LastIndexByte(authority, '@')
	if !ok || !hasPath || at < 0 || at == len(authority)-1 {
		return "", "", errFrom
	}
	return authority[at+1:], scheme + authority[:at] + "@hosts/" + path, nil
}

// parameters turns ?ssl-mode=required into the setting ssl_mode.
func parameters(query string) ([]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errFrom
	}
	var out []string
	for name, list := range values {
		if len(list) > 1 {
			return nil, fmt.Errorf("--from: %s is given twice", name)
		}
		if name == "password" {
			return nil, errors.New("--from: the password stands in front of the @, or in the variable " + sourcePasswordVariable)
		}
		out = append(out, strings.ReplaceAll(name, "-", "_")+"="+list[0])
	}
	slices.Sort(out)
	return out, nil
}
