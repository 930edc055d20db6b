package main

import (
	"context"
	"maps"
	"strings"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// What admins do with keys and rights.
func init() { maps.Copy(operations, keyOperations) }

var keyOperations = map[string]operation{
	"who_am_i": withClient(func(ctx context.Context, c *fila.Client, _ *request) (answer, error) {
		told, err := c.WhoAmI(ctx)
		return plain(told), err
	}),
	"create_key": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.CreateKeyOption
		if r.ExpiresAfterMs != 0 {
			opts = append(opts, fila.ExpiresAfter(ms(r.ExpiresAfterMs)))
		}
		if r.AsTenant != "" {
			opts = append(opts, fila.AsTenant(r.AsTenant))
		}
		told, err := c.CreateKey(ctx, r.name(), opts...)
		return plain(told), err
	}),
	"rotate_key": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.RotateKeyOption
		if r.ExpiresAfterMs != 0 {
			opts = append(opts, fila.ExpiresAfter(ms(r.ExpiresAfterMs)))
		}
		if r.OverlapMs != 0 {
			opts = append(opts, fila.Overlap(ms(r.OverlapMs)))
		}
		told, err := c.RotateKey(ctx, r.KeyID, opts...)
		return plain(told), err
	}),
	"revoke_key": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.RevokeKey(ctx, r.KeyID, r.force()...)
	}),
	"grant": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.Grant(ctx, r.name(), r.rights()...)
		return plain(told), err
	}),
	"revoke_grant": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.RevokeGrant(ctx, r.name(), r.rights(), r.force()...)
		return plain(told), err
	}),
	"forget_principal": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ForgetPrincipal(ctx, r.name(), r.force()...)
		return plain(told), err
	}),
	"get_principal": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.GetPrincipal(ctx, r.name())
		return plain(told), err
	}),
	"list_principals": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ListPrincipals(ctx, r.Prefix)
		return answer{"principals": listed(told)}, err
	}),
	"set_quotas": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.SetQuotas(ctx, r.name(), &filav1.Quotas{
			MessagesPerSecond: r.MessagesPerSecond, BytesPerSecond: r.BytesPerSecond,
			Connections: r.Connections, Streams: r.Streams, InFlight: r.InFlight, StoredBytes: r.StoredBytes,
		})
		return plain(told), err
	}),
	"list_audit": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.AuditOption
		if r.Before != nil {
			opts = append(opts, fila.Before(*r.Before))
		}
		if r.Limit != nil {
			opts = append(opts, fila.Limit(*r.Limit))
		}
		told, err := c.ListAudit(ctx, opts...)
		return answer{"records": listed(told)}, err
	}),
	"create_tenant_link": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.CreateTenantLinkOption
		if r.TTLMs != nil {
			opts = append(opts, fila.ExpiresAfter(ms(*r.TTLMs)))
		}
		if r.Right == "produce" {
			opts = append(opts, fila.ForWebhook())
		}
		told, err := c.CreateTenantLink(ctx, r.Queue, *r.Fairness, opts...)
		return plain(told), err
	}),
	"list_tenant_links": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ListTenantLinks(ctx, r.Queue)
		return answer{"links": listed(told)}, err
	}),
	"revoke_tenant_link": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.RevokeTenantLink(ctx, r.Queue, r.LinkID)
	}),
}

func (r *request) name() string {
	if r.Name == nil {
		return ""
	}
	return *r.Name
}

func (r *request) rights() []*filav1.Permission {
	var rights []*filav1.Permission
	for _, pattern := range r.Produce {
		rights = append(rights, fila.CanProduce(pattern))
	}
	for _, pattern := range r.Consume {
		if queues, channels, both := strings.Cut(pattern, ":"); both {
			rights = append(rights, fila.CanConsumeChannel(queues, channels))
		} else {
			rights = append(rights, fila.CanConsume(pattern))
		}
	}
	for _, pattern := range r.Manage {
		rights = append(rights, fila.CanManage(pattern))
	}
	for _, pattern := range r.View {
		rights = append(rights, fila.CanView(pattern))
	}
	for _, pattern := range r.Cancel {
		rights = append(rights, fila.CanCancel(pattern))
	}
	if r.Admin {
		rights = append(rights, fila.CanAdmin())
	}
	return rights
}
