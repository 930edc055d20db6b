/** Keys and rights: what admins do, and what everybody may ask about themselves. */

import { create, type MessageShape } from '@bufbuild/protobuf';

import type {
  CreateKeyOptions,
  CreateTenantLinkOptions,
  ForceOption,
  PageOptions,
  QuotaOptions,
  Rights,
  RotateKeyOptions,
  SignalOption,
} from './admin-options.js';
import { requireRange, requireText, requireTexts, requireWhole, toUint64, UINT32_MAX } from './arguments.js';
import {
  type AuditRecord as WireAuditRecord,
  AuditRecordSchema,
  FilaAuth,
  PermissionSchema,
  type Principal as WirePrincipal,
  PrincipalSchema,
  Right,
  type TenantLink as WireTenantLink,
  TenantLinkSchema,
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from './gen/fila/v1/auth_pb.js';
import { LimitCalls } from './limits.js';
import { type Plain, plain } from './plain.js';

/** Who the broker takes this client for, and what it may do. */
export interface Identity extends Plain<WhoAmIResponse> {}
/** A name with rights, its keys, its bounds and its use. */
export interface Principal extends Plain<WirePrincipal> {}
/** One act of an admin. */
export interface AuditRecord extends Plain<WireAuditRecord> {}

/** A key, told once: it is not stored, and who loses it makes another. */
export interface NewKey {
  /** The key itself. */
  readonly key: string;
  /** The part of it that is no secret. */
  readonly keyId: string;
}

/** A link for a tenant, without its secret. */
export interface TenantLink extends Plain<WireTenantLink> {}

/** A tenant's link, its key told once: it is not stored, and who loses it makes another. */
export interface NewTenantLink {
  /** The key itself; with the console the end of an address, CONSOLE/t#KEY. */
  readonly key: string;
  /** What is known of it. */
  readonly link: TenantLink;
}

const auth = FilaAuth.method;
const LINK_RIGHTS: ReadonlyMap<string, Right> = new Map([
  ['view', Right.VIEW],
  ['produce', Right.PRODUCE],
]);

/** The calls of FilaAuth, as methods of a client. */
export abstract class KeyCalls extends LimitCalls {
  /** Who the broker takes this client for, and what it may do; also while it asks for no keys. */
  async whoAmI(options: SignalOption = {}): Promise<Identity> {
    return plain(WhoAmIResponseSchema, await this.ask(auth.whoAmI, {}, {}, options));
  }

  /** Makes a key for a name, which is new or not. Rejects with Invalid, NotAllowed. */
  async createKey(name: string, options: CreateKeyOptions = {}): Promise<NewKey> {
    const { expiresAfterMs = 0, asTenant = '' } = options;
    requireText('name', name);
    requireText('asTenant', asTenant);
    const request = { name, expiresAfterMs: toUint64('expiresAfterMs', expiresAfterMs), asTenant };
    const { key, keyId } = await this.ask(auth.createKey, request, {}, options);
    return { key, keyId };
  }

  /** Makes another key for the same name; the old one ends after `overlapMs`. Rejects with NotFound. */
  async rotateKey(keyId: string, options: RotateKeyOptions = {}): Promise<NewKey> {
    const { overlapMs = 0, expiresAfterMs = 0 } = options;
    requireText('keyId', keyId);
    const request = {
      keyId,
      overlapMs: toUint64('overlapMs', overlapMs),
      expiresAfterMs: toUint64('expiresAfterMs', expiresAfterMs),
    };
    const made = await this.ask(auth.rotateKey, request, {}, options);
    return { key: made.key, keyId: made.keyId };
  }

  /**
   * Takes a key away: what it holds open ends within a second. The last admin's only with `force`; then only
   * `fila-server auth recover` makes another. Rejects with NotFound, Conflict.
   */
  async revokeKey(keyId: string, options: ForceOption = {}): Promise<void> {
    const { force = false } = options;
    requireText('keyId', keyId);
    await this.ask(auth.revokeKey, { keyId, force }, {}, options);
  }

  /**
   * Gives a name rights beside those it has; a name that is new is made, as for a certificate's. Resolves with
   * all it has then. Rejects with Invalid.
   */
  async grant(name: string, rights: Rights, options: SignalOption = {}): Promise<Principal> {
    requireText('name', name);
    const request = { name, permissions: permissionsOf(rights) };
    return principalOf(await this.ask(auth.grant, request, {}, options));
  }

  /**
   * Takes rights back, named as they were given; none named are all. Where nobody is an admin then, only with
   * `force`. Rejects with NotFound, Conflict.
   */
  async revokeGrant(name: string, rights: Rights = {}, options: ForceOption = {}): Promise<Principal> {
    const { force = false } = options;
    requireText('name', name);
    const request = { name, permissions: permissionsOf(rights), force };
    return principalOf(await this.ask(auth.revokeGrant, request, {}, options));
  }

  /** What is known of a name; of this client's own, when it is empty. Rejects with NotFound. */
  async getPrincipal(name = '', options: SignalOption = {}): Promise<Principal> {
    requireText('name', name);
    return principalOf(await this.ask(auth.getPrincipal, { name }, {}, options));
  }

  /** The names that begin so with their rights and keys, sorted by name; at most 10,000. */
  async listPrincipals(prefix = '', options: SignalOption = {}): Promise<Principal[]> {
    requireText('prefix', prefix);
    const { principals } = await this.ask(auth.listPrincipals, { prefix }, {}, options);
    return principals.map((principal) => plain(PrincipalSchema, principal));
  }

  /** Bounds what a name may use, all its keys together; all bounds anew. Rejects with NotFound, Invalid. */
  async setQuotas(name: string, quotas: QuotaOptions, options: SignalOption = {}): Promise<Principal> {
    const {
      messagesPerSecond = 0,
      bytesPerSecond = 0,
      connections = 0,
      streams = 0,
      inFlight = 0,
      storedBytes = 0,
    } = quotas;
    requireText('name', name);
    requireRange('messagesPerSecond', messagesPerSecond, 0, Infinity);
    requireRange('bytesPerSecond', bytesPerSecond, 0, Infinity);
    requireWhole('connections', connections, UINT32_MAX);
    requireWhole('streams', streams, UINT32_MAX);
    requireWhole('inFlight', inFlight, UINT32_MAX);
    const bounds = { messagesPerSecond, bytesPerSecond, connections, streams, inFlight };
    const request = { name, quotas: { ...bounds, storedBytes: toUint64('storedBytes', storedBytes) } };
    return principalOf(await this.ask(auth.setQuotas, request, {}, options));
  }

  /**
   * Forgets a name with its keys, rights, quotas and tenant, and resolves with what it had. The last admin only with
   * `force`. A name with nothing left goes by itself after a day. Rejects with NotFound, Conflict.
   */
  async forgetPrincipal(name: string, options: ForceOption = {}): Promise<Principal> {
    const { force = false } = options;
    requireText('name', name);
    return principalOf(await this.ask(auth.forgetPrincipal, { name, force }, {}, options));
  }

  /** What admins did, newest first: at most `limit` records (default 100, up to 1,000) of 10,000 kept. */
  async listAudit(options: PageOptions = {}): Promise<AuditRecord[]> {
    const { before = 0, limit = 0 } = options;
    requireWhole('limit', limit, UINT32_MAX);
    const request = { before: toUint64('before', before), limit };
    const { records } = await this.ask(auth.listAudit, request, {}, options);
    return records.map((record) => plain(AuditRecordSchema, record));
  }

  /**
   * Makes a key that shows one fairness key's numbers in one queue and may do nothing else. It needs the right to
   * manage the queue. Rejects with QueueNotFound, Conflict (the broker asks for no keys), NotAllowed.
   */
  async createTenantLink(
    queue: string,
    fairnessKey: string,
    options: CreateTenantLinkOptions = {},
  ): Promise<NewTenantLink> {
    const { ttlMs = 0, right = 'view' } = options;
    requireText('queue', queue);
    requireText('fairnessKey', fairnessKey);
    const wireRight = LINK_RIGHTS.get(right);
    if (wireRight === undefined) throw new RangeError(`right must be 'view' or 'produce', got '${right}'`);
    const request = { queue, fairnessKey, ttlMs: toUint64('ttlMs', ttlMs), right: wireRight };
    const { key, link } = await this.ask(auth.createTenantLink, request, {}, options);
    return { key, link: plain(TenantLinkSchema, link ?? create(TenantLinkSchema)) };
  }

  /** The links of a queue, or of all that this client may manage; those that end soonest first. */
  async listTenantLinks(queue = '', options: SignalOption = {}): Promise<TenantLink[]> {
    requireText('queue', queue);
    const { links } = await this.ask(auth.listTenantLinks, { queue }, {}, options);
    return links.map((link) => plain(TenantLinkSchema, link));
  }

  /** Takes a link away: what it holds open ends within a second. Rejects with NotFound. */
  async revokeTenantLink(queue: string, linkId: string, options: SignalOption = {}): Promise<void> {
    requireText('queue', queue);
    requireText('linkId', linkId);
    await this.ask(auth.revokeTenantLink, { queue, linkId }, {}, options);
  }
}

function principalOf({ principal }: { readonly principal?: WirePrincipal | undefined }): Principal {
  return plain(PrincipalSchema, principal ?? create(PrincipalSchema));
}

function permissionsOf(rights: Rights): MessageShape<typeof PermissionSchema>[] {
  const { produce = [], consume = [], manage = [], view = [], cancel = [], admin = false } = rights;
  const permissions = admin ? [create(PermissionSchema, { right: Right.ADMIN })] : [];
  const patternsByRight = [
    ['produce', Right.PRODUCE, produce],
    ['consume', Right.CONSUME, consume],
    ['manage', Right.MANAGE, manage],
    ['view', Right.VIEW, view],
    ['cancel', Right.CANCEL, cancel],
  ] as const;
  for (const [name, right, patterns] of patternsByRight) {
    requireTexts(name, patterns);
    for (const pattern of patterns) {
      const [queue = '', ...channel] = pattern.split(':');
      permissions.push(create(PermissionSchema, { right, queue, channel: channel.join(':') }));
    }
  }
  return permissions;
}
