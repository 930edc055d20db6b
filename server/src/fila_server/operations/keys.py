"""Fairness keys of one queue, found by how they begin, and what was set for single ones: walks of the edge, a part of
the queue's keys a command."""

from __future__ import annotations

import heapq

from fila.v1 import events_pb2
from fila.v1 import watch_pb2 as pb
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.key_walk import walk_keys

KEYS_DEFAULT = 20
POLICIES_MAX = 10_000


async def find_keys(broker: Broker, request: pb.FindKeysRequest) -> pb.FindKeysResponse:
    """Those that begin so, most pending first. Raises QueueNotFound, ChannelNotFound."""
    most = request.limit or KEYS_DEFAULT
    page = seam_frames.FindPage(
        queue=request.queue.encode(),
        channel=request.channel.encode(),
        prefix=request.prefix.encode(),
        most=most,
    )
    found: dict[str, pb.KeyState] = {}
    matched: int = 0
    async for part in walk_keys(broker.call, commands.FIND_KEYS, page, seam_frames.KeyRows):
        if part is None:
            matched = 0
            found.clear()
            continue
        matched += part.matched
        for row in part.keys:
            key = pb.KeyState.FromString(row)
            found[key.fairness_key] = key
        if len(found) > 4 * most:
            found = {key.fairness_key: key for key in _largest(found, most)}
    return pb.FindKeysResponse(keys=_largest(found, most), matched=matched)


async def key_policies(
    broker: Broker, request: events_pb2.ListKeyPoliciesRequest
) -> events_pb2.ListKeyPoliciesResponse:
    """What was set for the named key, or for every key, sorted by key; the first POLICIES_MAX behind
    `after`. Raises QueueNotFound."""
    page = seam_frames.PolicyPage(queue=request.queue.encode(), fairness_key=request.fairness_key.encode())
    found: dict[str, events_pb2.KeyPolicy] = {}
    async for part in walk_keys(broker.call, commands.KEY_POLICIES, page, seam_frames.PolicyPart):
        if part is None:
            found.clear()
            continue
        for row in part.policies:
            policy = events_pb2.KeyPolicy.FromString(row)
            if policy.fairness_key > request.after:
                found[policy.fairness_key] = policy
        if len(found) > 2 * POLICIES_MAX:
            found = {policy.fairness_key: policy for policy in _first(found)}
    return events_pb2.ListKeyPoliciesResponse(policies=_first(found))


def _first(found: dict[str, events_pb2.KeyPolicy]) -> list[events_pb2.KeyPolicy]:
    return heapq.nsmallest(POLICIES_MAX, found.values(), key=lambda policy: policy.fairness_key)


def _largest(found: dict[str, pb.KeyState], most: int) -> list[pb.KeyState]:
    chosen = heapq.nlargest(most, found.values(), key=lambda key: key.ready + key.delayed)
    return sorted(chosen, key=lambda key: (-(key.ready + key.delayed), key.fairness_key))
