// What operators look at, do with dead letters, and decide about keys and rights.
import { given, moment, plain, refuse, settings, toCamel } from './translation.js';

/** What a loop gives, at most so many. */
async function taken(loop, most = Infinity) {
  const items = [];
  for await (const item of loop) {
    if (items.push(plain(item)) >= most) break;
  }
  return items;
}

/** The operations whose arguments are the options of one call, by the names of the protocol. */
function options(others, names, signal) {
  const known = Object.fromEntries(names.map((name) => [toCamel(name), others[name]]));
  const unknown = Object.fromEntries(Object.entries(others).filter(([name]) => !names.includes(name)));
  refuse(unknown);
  return given({ ...known, signal });
}

function filterOf({ died_from_ms, died_before_ms, ...texts }) {
  return {
    ...settings(texts),
    ...given({ diedFrom: moment(died_from_ms), diedBefore: moment(died_before_ms) }),
  };
}

function scheduleOf({ payload, ...others }) {
  return { ...settings(others), ...given({ payload: payload && Buffer.from(payload, 'base64') }) };
}

function rightsOf({ produce, consume, manage, view, cancel, admin, ...others }) {
  return [given({ produce, consume, manage, view, cancel, admin }), others];
}

/** One function an operation; `named` finds a client. */
export const operating = (named) => ({
  async get_status({ client, ...others }, signal) {
    const asked = options(others, ['queue', 'fairness_key', 'max_troubles'], signal);
    return plain(await named(client).getStatus(asked));
  },

  async list_late({ client, ...others }, signal) {
    return plain(await named(client).listLate(options(others, ['queue', 'max_keys'], signal)));
  },

  async list_key_policies({ client, queue, ...others }, signal) {
    const asked = options(others, ['fairness_key'], signal);
    return { policies: plain(await named(client).listKeyPolicies(queue, asked)) };
  },

  async find_keys({ client, queue, prefix, ...others }, signal) {
    return plain(await named(client).findKeys(queue, prefix, options(others, ['channel', 'limit'], signal)));
  },

  async get_series({ client, queue, ...others }, signal) {
    return plain(await named(client).getSeries(queue, options(others, ['channel', 'keys'], signal)));
  },

  async watch_stats({ client, max_changes, ...others }, signal) {
    const asked = options(others, ['queues', 'channel', 'order', 'top', 'keys'], signal);
    return { changes: await taken(named(client).watchStats(asked), max_changes) };
  },

  async watch_events({ client, max_events, ...others }, signal) {
    const names = ['queue', 'kinds', 'fairness_key', 'after_position', 'follow'];
    const asked = options(others, names, signal);
    return { events: await taken(named(client).watchEvents(asked), max_events) };
  },

  async list_queue_versions({ client, queue, ...others }, signal) {
    const asked = options(others, ['before', 'limit'], signal);
    return { versions: plain(await named(client).listQueueVersions(queue, asked)) };
  },

  async get_queue_version({ client, queue, number, ...unknown }, signal) {
    return plain(await named(client).getQueueVersion(queue, number, options(unknown, [], signal)));
  },

  async dry_run_policy({ client, queue, config = {}, ...others }, signal) {
    return plain(
      await named(client).dryRunPolicy(queue, settings(config), options(others, ['last'], signal)),
    );
  },

  async drop_dead_letters({ client, queue, offsets, ...unknown }, signal) {
    return { dropped: await named(client).dropDeadLetters(queue, offsets, options(unknown, [], signal)) };
  },

  async edit_dead_letter({ client, queue, offset, payload, ...others }, signal) {
    const asked = options(others, ['headers'], signal);
    const bytes = Buffer.from(payload, 'base64');
    return { message_id: await named(client).editDeadLetter(queue, offset, bytes, asked) };
  },

  async create_schedule({ client, queue, schedule, settings: asked, ...unknown }, signal) {
    const signalled = options(unknown, [], signal);
    return plain(await named(client).createSchedule(queue, schedule, scheduleOf(asked), signalled));
  },

  async update_schedule({ client, queue, schedule, settings: asked, ...unknown }, signal) {
    const signalled = options(unknown, [], signal);
    return plain(await named(client).updateSchedule(queue, schedule, scheduleOf(asked), signalled));
  },

  async pause_schedule({ client, queue, schedule, paused, ...unknown }, signal) {
    const more = options(unknown, ['comment'], signal);
    return plain(await named(client).pauseSchedule(queue, schedule, paused, more));
  },

  async delete_schedule({ client, queue, schedule, ...unknown }, signal) {
    await named(client).deleteSchedule(queue, schedule, options(unknown, [], signal));
    return {};
  },

  async get_schedule({ client, queue, schedule, ...unknown }, signal) {
    return plain(await named(client).getSchedule(queue, schedule, options(unknown, [], signal)));
  },

  async list_schedules({ client, queue, ...others }, signal) {
    const asked = options(others, ['page_size', 'page_token'], signal);
    return plain(await named(client).listSchedules(queue, asked));
  },

  async set_limit({ client, name, rates, ...parts }, signal) {
    const asked = { ...settings(parts), ...given({ rates: rates?.map(settings) }) };
    return plain(await named(client).setLimit(name, asked, { signal }));
  },

  async get_limit({ client, throttle_key, ...unknown }, signal) {
    const limit = await named(client).getLimit(throttle_key, options(unknown, [], signal));
    return { limit: limit === undefined ? null : plain(limit) };
  },

  async list_limits({ client, prefix, ...others }, signal) {
    return plain(await named(client).listLimits(prefix, options(others, ['after', 'max_limits'], signal)));
  },

  async delete_limit({ client, name, ...unknown }, signal) {
    await named(client).deleteLimit(name, options(unknown, [], signal));
    return {};
  },

  async reset_limit({ client, throttle_key, spent, ...unknown }, signal) {
    return plain(await named(client).resetLimit(throttle_key, spent, options(unknown, [], signal)));
  },

  async start_operation({ client, queue, kind, filter, ...others }, signal) {
    const asked = options(others, ['rate_per_second'], signal);
    if (filter !== undefined) asked.filter = filterOf(filter);
    return plain(await named(client).startOperation(queue, kind, asked));
  },

  async watch_operation({ client, queue, operation_id, ...unknown }, signal) {
    const asked = options(unknown, [], signal);
    return { operations: await taken(named(client).watchOperation(queue, operation_id, asked)) };
  },

  async list_operations({ client, queue, ...unknown }, signal) {
    return { operations: plain(await named(client).listOperations(queue, options(unknown, [], signal))) };
  },

  async cancel_operation({ client, queue, operation_id, ...unknown }, signal) {
    const asked = options(unknown, [], signal);
    return plain(await named(client).cancelOperation(queue, operation_id, asked));
  },

  async who_am_i({ client, ...unknown }, signal) {
    return plain(await named(client).whoAmI(options(unknown, [], signal)));
  },

  async create_key({ client, name, ...others }, signal) {
    const asked = options(others, ['expires_after_ms', 'as_tenant'], signal);
    return plain(await named(client).createKey(name, asked));
  },

  async rotate_key({ client, key_id, ...others }, signal) {
    const asked = options(others, ['overlap_ms', 'expires_after_ms'], signal);
    return plain(await named(client).rotateKey(key_id, asked));
  },

  async revoke_key({ client, key_id, ...others }, signal) {
    await named(client).revokeKey(key_id, options(others, ['force'], signal));
    return {};
  },

  async grant({ client, name, ...others }, signal) {
    const [rights, unknown] = rightsOf(others);
    return plain(await named(client).grant(name, rights, options(unknown, [], signal)));
  },

  async revoke_grant({ client, name, ...others }, signal) {
    const [rights, left] = rightsOf(others);
    return plain(await named(client).revokeGrant(name, rights, options(left, ['force'], signal)));
  },

  async forget_principal({ client, name, ...others }, signal) {
    return plain(await named(client).forgetPrincipal(name, options(others, ['force'], signal)));
  },

  async get_principal({ client, name, ...unknown }, signal) {
    return plain(await named(client).getPrincipal(name, options(unknown, [], signal)));
  },

  async list_principals({ client, prefix, ...unknown }, signal) {
    return { principals: plain(await named(client).listPrincipals(prefix, options(unknown, [], signal))) };
  },

  async set_quotas({ client, name, ...others }, signal) {
    const bounds = [
      'messages_per_second',
      'bytes_per_second',
      'connections',
      'streams',
      'in_flight',
      'stored_bytes',
    ];
    const quotas = options(others, bounds, undefined);
    return plain(await named(client).setQuotas(name, quotas, { signal }));
  },

  async list_audit({ client, ...others }, signal) {
    return { records: plain(await named(client).listAudit(options(others, ['before', 'limit'], signal))) };
  },

  async create_tenant_link({ client, queue, fairness_key, ...others }, signal) {
    const asked = options(others, ['ttl_ms', 'right'], signal);
    return plain(await named(client).createTenantLink(queue, fairness_key, asked));
  },

  async list_tenant_links({ client, queue, ...unknown }, signal) {
    return { links: plain(await named(client).listTenantLinks(queue, options(unknown, [], signal))) };
  },

  async revoke_tenant_link({ client, queue, link_id, ...unknown }, signal) {
    await named(client).revokeTenantLink(queue, link_id, options(unknown, [], signal));
    return {};
  },
});
