package fila

import (
	"net"
	"strings"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
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

// newResolver hands gRPC the addresses as they are: names are looked up anew with each attempt to connect.
// serverName is what certificates shall name; empty for each address's own host.
func newResolver(hosts []string, serverName string) *manual.Resolver {
	addresses := make([]resolver.Address, len(hosts))
	for i, host := range hosts {
		name := serverName
		if name == "" {
			name, _, _ = net.SplitHostPort(host)
		}
		addresses[i] = resolver.Address{Addr: host, ServerName: name}
	}
	static := manual.NewBuilderWithScheme("fila")
	static.InitialState(resolver.State{Addresses: addresses})
	return static
}
