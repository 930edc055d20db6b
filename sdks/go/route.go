package fila

import (
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// A route is where the client's channel leads: to the addresses that were given, of which gRPC uses the first that
// answers; or to one alone, once a node of a group said that it stands by. Where nobody answers there, it leads to all
// again.
type route struct {
	resolver   *manual.Resolver
	given      []resolver.Address
	serverName string

	mu      sync.Mutex
	isAlone bool
	next    int // of the addresses given, where no owner is named
}

// newRoute hands gRPC the addresses as they are: names are looked up anew with each attempt to connect.
// serverName is what certificates shall name; empty for each address's own host.
func newRoute(hosts []string, serverName string) *route {
	r := &route{resolver: manual.NewBuilderWithScheme("fila"), serverName: serverName}
	for _, host := range hosts {
		r.given = append(r.given, r.address(host))
	}
	r.resolver.InitialState(resolver.State{Addresses: r.given})
	return r
}

func (r *route) address(host string) resolver.Address {
	name := r.serverName
	if name == "" {
		name, _, _ = net.SplitHostPort(host)
	}
	return resolver.Address{Addr: host, ServerName: name}
}

// leave leads to the owner, or to the next of the addresses where it is not known.
func (r *route) leave(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if owner == "" && len(r.given) == 1 {
		r.widenLocked() // the one that says so; it may know more in a moment
		return
	}
	to := r.address(owner)
	if owner == "" {
		r.next = (r.next + 1) % len(r.given)
		to = r.given[r.next]
	}
	r.isAlone = true
	r.resolver.UpdateState(resolver.State{Addresses: []resolver.Address{to}})
}

// widen leads to all addresses again, and returns whether it led to one alone.
func (r *route) widen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.widenLocked()
}

func (r *route) widenLocked() bool {
	if !r.isAlone {
		return false
	}
	r.isAlone = false
	r.resolver.UpdateState(resolver.State{Addresses: r.given})
	return true
}

// follow leads to where the owner is, if err is the word of a node that stands by: the next try is there.
func (c *connection) follow(err error) {
	var refused *Error
	if errors.As(err, &refused) && refused.Kind == ErrNotOwner && !c.closed.Load() {
		c.route.leave(refused.Owner)
	}
}
