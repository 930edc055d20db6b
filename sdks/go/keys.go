package fila

import (
	"context"
	"time"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// Keys and what their holders may do. All but WhoAmI and the look at one's own principal need the right admin.

// WhoAmI says who the broker takes this client for, and what it may do; also while it asks for no keys.
func (c *Client) WhoAmI(ctx context.Context) (*filav1.WhoAmIResponse, error) {
	request, plan := &filav1.WhoAmIRequest{}, callPlan{repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.auth.WhoAmI)
}

// A CreateKeyOption says more about CreateKey: [ExpiresAfter], [AsTenant].
type CreateKeyOption interface {
	applyToCreateKey(*filav1.CreateKeyRequest)
}

// A RotateKeyOption says more about RotateKey: [ExpiresAfter], [Overlap].
type RotateKeyOption interface {
	applyToRotateKey(*filav1.RotateKeyRequest)
}

// ExpiresAfterOption is what [ExpiresAfter] returns.
type ExpiresAfterOption time.Duration

// ExpiresAfter is how long a new key is valid, for ever unless set; a tenant's link 7 days unless set, 90 at most.
func ExpiresAfter(d time.Duration) ExpiresAfterOption { return ExpiresAfterOption(d) }

func (o ExpiresAfterOption) applyToCreateKey(r *filav1.CreateKeyRequest) {
	r.ExpiresAfterMs = milliseconds(time.Duration(o))
}

func (o ExpiresAfterOption) applyToRotateKey(r *filav1.RotateKeyRequest) {
	r.ExpiresAfterMs = milliseconds(time.Duration(o))
}

func (o ExpiresAfterOption) applyToCreateTenantLink(r *filav1.CreateTenantLinkRequest) {
	r.TtlMs = milliseconds(time.Duration(o))
}

type createKeyOption func(*filav1.CreateKeyRequest)

func (o createKeyOption) applyToCreateKey(r *filav1.CreateKeyRequest) { o(r) }

// AsTenant binds the messages of the key's holder to this fairness key; only for a name that is new, and with no right
// but produce and view.
func AsTenant(fairnessKey string) CreateKeyOption {
	return createKeyOption(func(r *filav1.CreateKeyRequest) { r.AsTenant = fairnessKey })
}

type rotateKeyOption func(*filav1.RotateKeyRequest)

func (o rotateKeyOption) applyToRotateKey(r *filav1.RotateKeyRequest) { o(r) }

// Overlap is how long the old key stays valid beside the new one; not at all unless set.
func Overlap(d time.Duration) RotateKeyOption {
	return rotateKeyOption(func(r *filav1.RotateKeyRequest) { r.OverlapMs = milliseconds(d) })
}

// CreateKey makes a key for a name, which is new or not. The answer is the only place where the key is ever told.
func (c *Client) CreateKey(
	ctx context.Context, name string, opts ...CreateKeyOption,
) (*filav1.CreateKeyResponse, error) {
	request := &filav1.CreateKeyRequest{Name: name}
	for _, opt := range opts {
		opt.applyToCreateKey(request)
	}
	return call(ctx, c.connection, callPlan{repeatable: once}, request, c.connection.auth.CreateKey)
}

// RotateKey makes another key for the same name, and ends the old one. It fails with ErrNotFound.
func (c *Client) RotateKey(
	ctx context.Context, keyID string, opts ...RotateKeyOption,
) (*filav1.RotateKeyResponse, error) {
	request := &filav1.RotateKeyRequest{KeyId: keyID}
	for _, opt := range opts {
		opt.applyToRotateKey(request)
	}
	return call(ctx, c.connection, callPlan{repeatable: once}, request, c.connection.auth.RotateKey)
}

// RevokeKey takes a key away: what it holds open ends within a second. The last admin's only with [Force]; then only
// `fila-server auth recover` makes another. It fails with ErrNotFound, ErrConflict.
func (c *Client) RevokeKey(ctx context.Context, keyID string, force ...ForceOption) error {
	request := &filav1.RevokeKeyRequest{KeyId: keyID, Force: len(force) > 0}
	_, err := call(ctx, c.connection, callPlan{repeatable: once}, request, c.connection.auth.RevokeKey)
	return err
}

// CanProduce is the right to enqueue to the queues whose names match, such as "orders.*".
func CanProduce(queues string) *filav1.Permission {
	return &filav1.Permission{Right: filav1.Right_RIGHT_PRODUCE, Queue: queues}
}

// CanConsume is the right to receive, settle, peek and read the log of the queues whose names match.
func CanConsume(queues string) *filav1.Permission {
	return &filav1.Permission{Right: filav1.Right_RIGHT_CONSUME, Queue: queues}
}

// CanConsumeChannel is the same for their channels whose names match alone.
func CanConsumeChannel(queues, channels string) *filav1.Permission {
	return &filav1.Permission{Right: filav1.Right_RIGHT_CONSUME, Queue: queues, Channel: channels}
}

// CanManage is the right to create, change, purge, seek and delete the queues whose names match, and their channels.
func CanManage(queues string) *filav1.Permission {
	return &filav1.Permission{Right: filav1.Right_RIGHT_MANAGE, Queue: queues}
}

// CanView is the right to look at numbers and events of the queues whose names match; at no message.
func CanView(queues string) *filav1.Permission {
	return &filav1.Permission{Right: filav1.Right_RIGHT_VIEW, Queue: queues}
}

// CanCancel is the right to take messages back from the queues whose names match.
func CanCancel(queues string) *filav1.Permission {
	return &filav1.Permission{Right: filav1.Right_RIGHT_CANCEL, Queue: queues}
}

// CanAdmin is the right to everything, keys and runtime config included.
func CanAdmin() *filav1.Permission { return &filav1.Permission{Right: filav1.Right_RIGHT_ADMIN} }

// Grant gives a name rights beside those it has; a name that is new is made, as for a certificate's. It returns all
// that the name has then.
func (c *Client) Grant(
	ctx context.Context, name string, rights ...*filav1.Permission,
) (*filav1.Principal, error) {
	request := &filav1.GrantRequest{Name: name, Permissions: rights}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.Grant)
	return answer.GetPrincipal(), err
}

// RevokeGrant takes rights back, named exactly as they were given; none named are all. Where nobody is an admin then,
// only with [Force]. It fails with ErrNotFound, ErrConflict.
func (c *Client) RevokeGrant(
	ctx context.Context, name string, rights []*filav1.Permission, force ...ForceOption,
) (*filav1.Principal, error) {
	request := &filav1.RevokeGrantRequest{Name: name, Permissions: rights, Force: len(force) > 0}
	plan := callPlan{repeatable: once}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.RevokeGrant)
	return answer.GetPrincipal(), err
}

// ForgetPrincipal forgets a name with its keys, rights, quotas and tenant, and returns what it had. Where nobody is an
// admin then, only with [Force]. A name with nothing left goes by itself after a day. It fails with ErrNotFound,
// ErrConflict.
func (c *Client) ForgetPrincipal(
	ctx context.Context, name string, force ...ForceOption,
) (*filav1.Principal, error) {
	request := &filav1.ForgetPrincipalRequest{Name: name, Force: len(force) > 0}
	plan := callPlan{repeatable: once}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.ForgetPrincipal)
	return answer.GetPrincipal(), err
}

// GetPrincipal returns what is known of a name, of this client's own where it is empty: rights, keys, quotas.
func (c *Client) GetPrincipal(ctx context.Context, name string) (*filav1.Principal, error) {
	request := &filav1.GetPrincipalRequest{Name: name}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.GetPrincipal)
	return answer.GetPrincipal(), err
}

// ListPrincipals returns the names that begin so, with their rights and keys, sorted by name; at most 10,000.
func (c *Client) ListPrincipals(ctx context.Context, prefix string) ([]*filav1.Principal, error) {
	request := &filav1.ListPrincipalsRequest{Prefix: prefix}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.ListPrincipals)
	return answer.GetPrincipals(), err
}

// SetQuotas bounds what a name may use, all its keys together; all bounds anew, 0 for none. It fails with ErrNotFound,
// ErrInvalid.
func (c *Client) SetQuotas(
	ctx context.Context, name string, quotas *filav1.Quotas,
) (*filav1.Principal, error) {
	request := &filav1.SetQuotasRequest{Name: name, Quotas: quotas}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.SetQuotas)
	return answer.GetPrincipal(), err
}

// An AuditOption says more about ListAudit: [Before], or [Limit].
type AuditOption interface {
	applyToAudit(*filav1.ListAuditRequest)
}

func (o BeforeOption) applyToAudit(r *filav1.ListAuditRequest) { r.Before = uint64(o) }
func (o LimitOption) applyToAudit(r *filav1.ListAuditRequest)  { r.Limit = uint32(o) }

// ListAudit returns what admins did, newest first. The newest 10,000 acts are kept.
func (c *Client) ListAudit(ctx context.Context, opts ...AuditOption) ([]*filav1.AuditRecord, error) {
	request := &filav1.ListAuditRequest{}
	for _, opt := range opts {
		opt.applyToAudit(request)
	}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.ListAudit)
	return answer.GetRecords(), err
}

// A CreateTenantLinkOption says more about CreateTenantLink: [ExpiresAfter], [ForWebhook].
type CreateTenantLinkOption interface {
	applyToCreateTenantLink(*filav1.CreateTenantLinkRequest)
}

type createTenantLinkOption func(*filav1.CreateTenantLinkRequest)

func (o createTenantLinkOption) applyToCreateTenantLink(r *filav1.CreateTenantLinkRequest) { o(r) }

// ForWebhook makes a link that only sends: the end of a webhook's address. What it sends has the link's fairness key,
// or the queue's if that is empty. It is valid for ever unless [ExpiresAfter] is set, 10 years at most.
func ForWebhook() CreateTenantLinkOption {
	return createTenantLinkOption(func(r *filav1.CreateTenantLinkRequest) { r.Right = filav1.Right_RIGHT_PRODUCE })
}

// CreateTenantLink makes a key that shows one fairness key's numbers in one queue and may do nothing else, or with
// [ForWebhook] only sends. The answer is the only place where it is ever told. It needs the right to manage the queue,
// and fails with ErrQueueNotFound, ErrConflict (the broker asks for no keys), ErrNotAllowed.
func (c *Client) CreateTenantLink(
	ctx context.Context, queue, fairnessKey string, opts ...CreateTenantLinkOption,
) (*filav1.CreateTenantLinkResponse, error) {
	request := &filav1.CreateTenantLinkRequest{Queue: queue, FairnessKey: fairnessKey}
	for _, opt := range opts {
		opt.applyToCreateTenantLink(request)
	}
	plan := callPlan{repeatable: once}
	return call(ctx, c.connection, plan, request, c.connection.auth.CreateTenantLink)
}

// ListTenantLinks returns the links of a queue, of all that this client may manage where it is empty; those that end
// soonest first.
func (c *Client) ListTenantLinks(ctx context.Context, queue string) ([]*filav1.TenantLink, error) {
	request := &filav1.ListTenantLinksRequest{Queue: queue}
	plan := callPlan{repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.auth.ListTenantLinks)
	return answer.GetLinks(), err
}

// RevokeTenantLink takes a link away: what it holds open ends within a second. It fails with ErrNotFound.
func (c *Client) RevokeTenantLink(ctx context.Context, queue, linkID string) error {
	request := &filav1.RevokeTenantLinkRequest{Queue: queue, LinkId: linkID}
	_, err := call(ctx, c.connection, callPlan{repeatable: once}, request, c.connection.auth.RevokeTenantLink)
	return err
}
