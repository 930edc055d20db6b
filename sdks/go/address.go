package fila

import (
	"net"
	"strings"
)

const defaultPort = "5555"

// parseAddresses reads one address or several, separated by commas: host:port, with or without http:// or
// https://, the port being 5555 where none is given.
func parseAddresses(addr string) (hosts []string, secure bool, err error) {
	for part := range strings.SplitSeq(addr, ",") {
		host := strings.TrimSpace(part)
		scheme, rest, hasScheme := strings.Cut(host, "://")
		if hasScheme {
			if scheme != "http" && scheme != "https" {
				return nil, false, badAddress(addr)
			}
			secure = secure || scheme == "https"
			host = strings.TrimSuffix(rest, "/")
		}
		if host == "" || strings.ContainsAny(host, "/ ") {
			return nil, false, badAddress(addr)
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
		}
		hosts = append(hosts, host)
	}
	return hosts, secure, nil
}

func badAddress(addr string) error {
	return invalidField("addr", "an address looks like localhost:5555 or http://localhost:5555, got %q", addr)
}
